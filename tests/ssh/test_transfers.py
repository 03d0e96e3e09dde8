"""File transfers in both directions with the usual tools."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, run_ssh, run_ssh_server

from freehold.ssh.server import CIPHERS

SIZE = 100 * 1024 * 1024


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("big") / "big"
    path.write_bytes(os.urandom(1024 * 1024) * (SIZE // 1024 // 1024))
    yield path
    path.unlink()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*argv: str | Path, stdin: str | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in argv], input=stdin, capture_output=True, text=True, timeout=2 * SSH_TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_inside(key: ClientKey, name: str, big: Path) -> None:
    assert run_ssh(key, f"sha256sum < {name}; rm {name}").stdout.split()[0].decode() == digest(big)


@pytest.mark.parametrize("old", [False, True], ids=["over-sftp", "legacy"])
def test_scp_carries_100_mb_both_ways(key: ClientKey, big: Path, tmp_path: Path, old: bool) -> None:
    scp = ["scp", "-q", "-F", str(key.config), *(["-O"] if old else [])]
    run(*scp, big, "computer:carried")
    run(*scp, "computer:carried", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(big)
    check_inside(key, "carried", big)


def test_sftp_carries_100_mb_both_ways(key: ClientKey, big: Path, tmp_path: Path) -> None:
    words = f"put {big} carried\nget carried {tmp_path / 'back'}\n"
    run("sftp", "-q", "-F", key.config, "-b", "-", "computer", stdin=words)
    assert digest(tmp_path / "back") == digest(big)
    check_inside(key, "carried", big)


def test_rsync_carries_100_mb_both_ways(key: ClientKey, big: Path, tmp_path: Path) -> None:
    shell = f"ssh -F {key.config}"
    run("rsync", "-e", shell, "-t", big, "computer:carried")
    run("rsync", "-e", shell, "-t", "computer:carried", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(big)
    assert "carried" not in run("rsync", "-e", shell, "-t", "-i", big, "computer:carried").splitlines()
    check_inside(key, "carried", big)


def test_cat_carries_100_mb_both_ways(key: ClientKey, big: Path) -> None:
    assert run_ssh(key, "cat > carried; sha256sum < carried", stdin=big.read_bytes()).stdout.split()[
        0
    ].decode() == digest(big)
    assert hashlib.sha256(run_ssh(key, "cat carried; rm carried").stdout).hexdigest() == digest(big)


def test_git_clones_and_pushes(key: ClientKey, tmp_path: Path) -> None:
    run_ssh(key, "git init -q --bare -b main repo.git", check=True)
    environment = {**os.environ, "GIT_SSH_COMMAND": f"ssh -F {key.config}", "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]

    def git(*words: str, cwd: Path) -> str:
        done = subprocess.run(
            ["git", *who, *words],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SSH_TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    git("clone", "-q", "computer:repo.git", "one", cwd=tmp_path)
    (tmp_path / "one" / "note").write_text("hello\n")
    git("add", "note", cwd=tmp_path / "one")
    git("commit", "-q", "-m", "a note", cwd=tmp_path / "one")
    git("push", "-q", "origin", "HEAD:main", cwd=tmp_path / "one")
    git("clone", "-q", "-b", "main", "ssh://computer/workspace/repo.git", "two", cwd=tmp_path)
    assert (tmp_path / "two" / "note").read_text() == "hello\n"
    run_ssh(key, "rm -rf repo.git", check=True)


@pytest.mark.parametrize("cipher", CIPHERS)
def test_rekeying_during_a_transfer_loses_nothing(key: ClientKey, big: Path, cipher: str) -> None:
    """With each cipher, and with data in both directions."""
    options = ("-o", "RekeyLimit=4M", "-c", cipher)
    part = big.read_bytes()[: 24 * 1024 * 1024]
    assert run_ssh(key, "cat", options=options, stdin=part).stdout == part


def test_the_server_starts_a_rekey(key: ClientKey, tmp_path: Path) -> None:
    """By default after a gigabyte; here earlier."""
    with run_ssh_server(tmp_path, rekey_bytes=4 * 1024 * 1024) as server:
        part = os.urandom(16 * 1024 * 1024)
        assert run_ssh(server.issue(), "cat", stdin=part).stdout == part


def test_keep_alives_are_answered(key: ClientKey) -> None:
    """A client without any answer would leave after five seconds."""
    options = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=5")
    assert run_ssh(key, "sleep 8; echo alive", options=options).stdout == b"alive\n"
