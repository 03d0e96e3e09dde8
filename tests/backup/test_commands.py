"""The commands as an owner runs them: key, now, list, status, verify, prune, restore-from, export, import."""

import asyncio
import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncssh
import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree

from freehold.backup.age import AgeIdentity
from freehold.backup.recovery_state import read_recovery_state
from freehold.backup.status import read_status
from freehold.home import Home
from freehold.timeline import Timeline


class Owner:
    """Runs commands on one home."""

    def __init__(self, small_home: BackupHome, place: Path) -> None:
        self.home = small_home.home
        self.place = place
        self.home.manifest.write_text(f'[backup]\nto = "{place}"\nhourly = 1\ndaily = 1\nweekly = 1\n')

    def run(self, *words: str, typed: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "freehold.cli.main", *words]
        if "--home" not in words:
            command += ["--home", str(self.home.root)]
        settings = {**os.environ, **environment}
        return subprocess.run(
            command, input=typed, env=settings, capture_output=True, text=True, timeout=120, check=False
        )

    def read(self, *words: str, typed: str = "") -> object:
        done = self.run(*words, "--json", typed=typed)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def make_key_at_terminal(self, answer: Callable[[str], str]) -> tuple[int, str]:
        """The exit code, and what the owner saw who answered to the shown key with this."""
        command = [sys.executable, "-m", "freehold.cli.main", "backup", "key", "--home", str(self.home.root)]
        terminal, inside = pty.openpty()
        try:
            with subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside) as program:
                os.close(inside)
                seen = ""
                with contextlib.suppress(OSError):  # its end
                    while data := os.read(terminal, 65536):
                        seen += data.decode()
                        if seen.endswith("check that you have it: "):
                            os.write(terminal, f"{answer(seen)}\n".encode())
                return program.wait(60), seen
        finally:
            os.close(terminal)

    def make_key(self) -> str:
        done = self.run("backup", "key")
        assert done.returncode == 0, done.stderr
        return next(line.strip() for line in done.stdout.splitlines() if "AGE-SECRET-KEY-1" in line)


@pytest.fixture
def owner(small_home: BackupHome, tmp_path: Path) -> Owner:
    return Owner(small_home, tmp_path / "place")


def test_from_the_set_up_to_a_restored_home(owner: Owner, tmp_path: Path) -> None:
    before = owner.run("backup", "now")
    assert before.returncode == 1
    assert "freehold backup key" in before.stderr
    early = owner.run("backup", "key", "--try")
    assert early.returncode == 1
    assert "[backup.no-recovery-key]" in early.stderr, "nobody is asked for a key that there is not"

    key = owner.make_key()
    assert key not in owner.run("backup", "key").stdout, "it is shown once"
    assert key.encode() not in b"".join(path.read_bytes() for path in owner.home.vault.iterdir() if path.is_file())
    tried = owner.read("backup", "key", "--try", typed=f"{key}\n")
    assert isinstance(tried, dict)
    assert tried["tried"] is not None
    wrong = owner.run("backup", "key", "--try", typed=key[:-1] + ("P\n" if key.endswith("Q") else "Q\n"))
    assert wrong.returncode == 1
    assert "no recovery key" in wrong.stderr

    assert "Backup 1 is complete" in owner.run("backup", "now").stdout
    assert "Nothing has changed" in owner.run("backup", "now").stdout
    add_events(owner.home, 1)
    assert "Backup 2 is complete" in owner.run("backup", "now").stdout
    listed = owner.read("backup", "list")
    assert isinstance(listed, list)
    assert [one["number"] for one in listed] == [2, 1]
    assert "No damage found" in owner.run("backup", "verify", "--all").stdout
    assert "No damage found" in owner.run("backup", "verify", "--restore").stdout
    assert "1 kept, 1 removed" in owner.run("backup", "prune").stdout
    assert owner.run("backup", "status").returncode == 0
    with Timeline(owner.home.timeline, readonly=True) as timeline:
        kinds = [event.kind for event in timeline.read(after=0, kinds=["backup.*"])]
    assert kinds == [
        "backup.key_made", "backup.completed", "backup.completed", "backup.verified", "backup.rehearsed", "backup.pruned",
    ]  # fmt: skip

    into = tmp_path / "moved"
    done = owner.run("restore-from", str(owner.place), "--into", str(into), FREEHOLD_RECOVERY_KEY=key)
    assert done.returncode == 0, done.stderr
    assert f"Restored {listed[0]['files']:,} files" in done.stdout, "as many as the backup said"
    assert f"freehold up --home {into}" in done.stdout
    assert describe_tree(into / "workspace") == describe_tree(owner.home.workspace)
    moved = owner.run("backup", "now", "--home", str(into))
    assert moved.returncode == 1
    assert str(owner.home.root) in moved.stderr
    assert "Backup 3 is complete" in owner.run("backup", "now", "--take-over", "--home", str(into)).stdout


def test_no_key_is_shown_for_a_place_that_does_not_answer(owner: Owner, tmp_path: Path) -> None:
    """A key that was written down and opens nothing would be worse than none."""
    (tmp_path / "file").write_text("no folder")
    for section, code in (("", "backup.off"), (f'to = "{tmp_path}/file"', "backup.")):
        owner.home.manifest.write_text(f"[backup]\n{section}\n")
        done = owner.run("backup", "key")
        assert done.returncode == 1
        assert code in done.stderr
        assert "AGE-SECRET-KEY" not in done.stdout


def _find_key(seen: str) -> str:
    return str(re.findall(r"AGE-SECRET-KEY-1\w+", seen)[0])


def test_the_key_that_is_typed_back_is_tried_at_once(owner: Owner) -> None:
    """At a terminal. In small letters and with spaces, as a person may write it down."""
    code, seen = owner.make_key_at_terminal(lambda seen: f" {_find_key(seen).lower()} ")
    assert code == 0, seen
    state = read_recovery_state(owner.home)
    assert state is not None
    assert state.tried is not None
    assert owner.run("backup", "now").returncode == 0


def test_a_key_that_is_typed_wrong_sets_nothing_up(owner: Owner) -> None:
    """Also when it is a key, but another one. The next time shows a new one."""
    shown = set()
    for wrong in (AgeIdentity.generate().reveal(), "not a key", "AGE-SECRET-KEY-1"):
        code, seen = owner.make_key_at_terminal(lambda seen, wrong=wrong: wrong)  # type: ignore[misc]
        assert code == 1, seen
        assert "backup.bad-key" in seen
        shown.add(_find_key(seen))
        assert read_recovery_state(owner.home) is None
        assert owner.run("backup", "now").returncode == 1
    assert len(shown) == 3


def test_a_failure_is_noted_for_the_health_and_the_timeline(owner: Owner) -> None:
    owner.make_key()
    owner.run("backup", "now")
    for path in owner.place.glob("meta/snapshots/*"):
        path.unlink()
    add_events(owner.home, 1)
    assert "has lost backups" in owner.run("backup", "now").stderr
    assert owner.run("backup", "now").returncode == 1
    status = read_status(owner.home)
    assert status.failure is not None
    assert status.failure.code == "backup.rolled-back"
    shown = owner.run("backup", "status")
    assert shown.returncode == 1
    assert "has lost backups" in shown.stdout
    with Timeline(owner.home.timeline, readonly=True) as timeline:
        assert len(timeline.read(after=0, kinds=["backup.failed"])) == 1, "once for a row of failures"
    assert owner.run("backup", "now", "--accept-loss").returncode == 0
    assert read_status(owner.home).failure is None


def test_each_work_has_its_own_failure(owner: Owner) -> None:
    """A backup that succeeds does not hide a prune that never does, and that is told once, not at each attempt."""
    owner.make_key()
    assert owner.run("backup", "now").returncode == 0
    add_events(owner.home, 1)
    assert owner.run("backup", "now").returncode == 0
    oldest = owner.place / "meta/snapshots/000000000001"
    kept = oldest.read_bytes()
    oldest.write_bytes(kept[:-1])
    for _ in range(2):
        assert owner.run("backup", "prune").returncode == 1
        add_events(owner.home, 1)
        assert owner.run("backup", "now").returncode == 0
        status = read_status(owner.home)
        assert list(status.failures) == ["prune"]
        assert "The last removal of old backups failed" in owner.run("backup", "status").stdout
    with Timeline(owner.home.timeline, readonly=True) as timeline:
        told = timeline.read(after=0, kinds=["backup.failed"])
    assert [event.data["work"] for event in told] == ["prune"]
    oldest.write_bytes(kept)
    assert owner.run("backup", "prune").returncode == 0
    assert read_status(owner.home).failures == {}


@pytest.mark.parametrize("newest", ["whole", "damaged"])
def test_backups_go_on_from_an_older_one_that_was_restored(owner: Owner, tmp_path: Path, newest: str) -> None:
    """Its timeline does not have what the newest backup saw. The restore and the refusal name what goes on."""
    key = owner.make_key()
    for _ in range(2):
        assert owner.run("backup", "now").returncode == 0
        add_events(owner.home, 1)
    if newest == "damaged":
        path = owner.place / "meta/snapshots/000000000002"
        path.write_bytes(path.read_bytes()[:-1])
    into = tmp_path / "older"
    words = ["restore-from", str(owner.place), "--number", "1", "--into", str(into)]
    restored = owner.run(*words, FREEHOLD_RECOVERY_KEY=key)
    assert restored.returncode == 0, restored.stderr
    assert f"freehold backup now --take-over --accept-loss --home {into}" in restored.stdout
    refused = owner.run("backup", "now", "--take-over", "--home", str(into))
    assert refused.returncode == 1
    assert ("backup.timeline-cut" if newest == "whole" else "backup.lost") in refused.stderr
    assert "freehold backup now --accept-loss" in refused.stderr
    accepted = owner.run("backup", "now", "--take-over", "--accept-loss", "--home", str(into))
    assert "Backup 3 is complete" in accepted.stdout, accepted.stderr
    add_events(Home(into, tmp_path / "run"), 1)
    assert "Backup 4 is complete" in owner.run("backup", "now", "--home", str(into)).stdout
    assert read_status(Home(into, tmp_path / "run")).failures == {}


def test_a_key_of_the_owners_own_is_used(owner: Owner, tmp_path: Path) -> None:
    """Made by age-keygen on another machine; its secret half was never here."""
    subprocess.run(["age-keygen", "-o", tmp_path / "mine.txt"], capture_output=True, check=True)
    recipient = (tmp_path / "mine.txt").read_text().split("public key: ")[1].split()[0]
    assert owner.run("backup", "key", "--recipient", recipient).returncode == 0
    assert owner.run("backup", "now").returncode == 0
    into = tmp_path / "restored"
    done = owner.run("restore-from", str(owner.place), "--into", str(into), "--key-file", str(tmp_path / "mine.txt"))
    assert done.returncode == 0, done.stderr
    assert describe_tree(into / "pods") == describe_tree(owner.home.pods)


def test_the_whole_goes_into_one_file_and_back(owner: Owner, tmp_path: Path) -> None:
    exported = owner.read("export", str(tmp_path / "freehold.tar"))
    assert isinstance(exported, dict)
    again = owner.run("export", str(tmp_path / "freehold.tar"))
    assert again.returncode == 1
    assert "exists already" in again.stderr
    into = tmp_path / "imported"
    done = owner.run(
        "import", str(tmp_path / "freehold.tar"), "--into", str(into), typed=f"{exported['recovery_key']}\n"
    )
    assert done.returncode == 0, done.stderr
    for name in ("workspace", "home", "pods"):
        assert describe_tree(into / name) == describe_tree(owner.home.root / name)
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []


def test_an_export_opens_with_the_recovery_key_of_the_backups(owner: Owner, tmp_path: Path) -> None:
    key = owner.make_key()
    exported = owner.read("export", str(tmp_path / "freehold.tar"))
    assert isinstance(exported, dict)
    assert exported["recovery_key"] is None
    done = owner.run("import", str(tmp_path / "freehold.tar"), "--into", str(tmp_path / "in"), typed=f"{key}\n")
    assert done.returncode == 0, done.stderr


def test_a_damaged_backup_does_not_hide_the_others(owner: Owner) -> None:
    key = owner.make_key()
    owner.run("backup", "now")
    add_events(owner.home, 1)
    owner.run("backup", "now")
    newest = owner.place / "meta/snapshots/000000000002"
    newest.write_bytes(newest.read_bytes()[:-1])
    listed = owner.run("backup", "list")
    assert listed.returncode == 1
    assert listed.stdout.split()[0] == "1"
    assert "meta/snapshots/000000000002" in listed.stderr
    restored = owner.run("restore-from", str(owner.place), "--into", str(owner.place / "in"), typed=f"{key}\n")
    assert restored.returncode == 1
    assert "--number 1" in restored.stderr


@pytest.mark.parametrize("work", ["export", "restore-from"])
def test_a_full_disk_is_told_in_words(owner: Owner, tmp_path: Path, work: str) -> None:
    """No file may be larger than 100 kB here, as on a disk that is full."""
    key = owner.make_key()
    assert owner.run("backup", "now").returncode == 0
    (tmp_path / "key.txt").write_text(key)
    words = {
        "export": ["export", str(tmp_path / "out.tar"), "--home", str(owner.home.root)],
        "restore-from": [
            "restore-from",
            str(owner.place),
            "--into",
            str(tmp_path / "in"),
            "--key-file",
            str(tmp_path / "key.txt"),
        ],
    }[work]
    command = ["prlimit", "--fsize=100000", sys.executable, "-m", "freehold.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Unexpected" not in done.stderr
    assert not (tmp_path / "out.tar").exists()


class RecordingServer(asyncssh.SSHServer):
    """Lets nobody in, and keeps who tried with which password."""

    def __init__(self, tried: list[tuple[str, str]]) -> None:
        self._tried = tried

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._tried.append((username, password))
        return False


async def test_a_server_for_sftp_never_gets_the_key_of_s3(owner: Owner, tmp_path: Path) -> None:
    """Both are in the environment of one who has backups at both. The user is that of the address, or the owner's own."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    tried: list[tuple[str, str]] = []
    (tmp_path / ".ssh").mkdir(mode=0o700)
    server = await asyncssh.create_server(
        lambda: RecordingServer(tried), "127.0.0.1", 0, server_host_keys=[host_key], reuse_address=True
    )
    async with server:
        port = server.get_port()
        public = host_key.export_public_key().decode()
        (tmp_path / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
        environment = {
            "HOME": str(tmp_path),
            "AWS_ACCESS_KEY_ID": "AKIA0123456789",
            "AWS_SECRET_ACCESS_KEY": "of-s3",
            "SFTP_PASSWORD": "of-sftp",
            "FREEHOLD_RECOVERY_KEY": AgeIdentity.generate().reveal(),
        }
        for user in ("", "me@"):
            url = f"sftp://{user}127.0.0.1:{port}/backups"
            words = ("restore-from", url, "--into", str(tmp_path / "in"))
            refused = await asyncio.to_thread(owner.run, *words, **environment)
            assert refused.returncode == 1, refused.stderr
    assert {password for _, password in tried} == {"of-sftp"}, tried
    users = {user for user, _ in tried}
    assert "me" in users
    assert "AKIA0123456789" not in users
