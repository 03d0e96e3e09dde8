"""Upgrades of a real home: to a version that works, and to ones that do not, after which everything is as it was."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.golden.test_golden_home import HERE as GOLDEN
from tests.golden.test_golden_home import unpack
from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.installed_version import current_version, find_python
from freehold.timeline.database import FORMAT
from freehold.upgrade import environment as environments
from freehold.upgrade import home_copy
from freehold.upgrade import trial as trials
from freehold.upgrade.environment import VersionEnvironment, download_wheel, make_environment
from freehold.upgrade.home_copy import HomeCopy
from freehold.upgrade.installed_extras import list_installed_extras
from freehold.upgrade.trial import TrialJournal, UpgradeTrial
from freehold.upgrade.wheel import ReleaseWheel, read_wheel

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.shared_processes
BROKEN_GATEWAY = """
import sqlite3, sys
from freehold.home import find_home
home = find_home(sys.argv[sys.argv.index("--home") + 1])
with sqlite3.connect(home.timeline) as db:
    db.execute("CREATE TABLE IF NOT EXISTS migrated (x)")
(home.root / "left-behind").write_text("by the new version")
sys.exit("this version is broken")
"""


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=200)
    (found,) = folder.glob("*.whl")
    return found


def make_release(present: Path, folder: Path, version: str, changed: Mapping[str, str]) -> Path:
    """The same wheel with another version, and other content of some files."""
    made = folder / f"freehold-{version}-py3-none-any.whl"
    old, new = f"freehold-{__version__}.dist-info/", f"freehold-{version}.dist-info/"
    with zipfile.ZipFile(present) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            if name.endswith(("/RECORD", ".safetensors")):
                continue
            content = source.read(name)
            if name in changed:
                content = changed[name].encode()
            elif name == f"{old}METADATA":
                content = content.replace(f"Version: {__version__}".encode(), f"Version: {version}".encode(), 1)
            elif name == "freehold/__init__.py":
                content = content.replace(f'"{__version__}"'.encode(), f'"{version}"'.encode(), 1)
            elif name == "freehold/CHANGELOG.md":
                content = f"# Changes\n\n## {version}\n\n- It is better.\n\n".encode() + content
            target.writestr(name.replace(old, new), content)
        target.writestr(f"{new}RECORD", "")
    return made


@pytest.fixture(scope="module")
def broken(present: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version whose gateway changes the home and ends. It is installed once: an environment that is complete is used again."""
    changed = {"freehold/gateway/__main__.py": BROKEN_GATEWAY}
    return make_release(present, tmp_path_factory.mktemp("broken"), "9.0.0", changed)


@pytest.fixture(scope="module")
def working(present: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(present, tmp_path_factory.mktemp("working"), "9.1.0", {})


class Installed:
    """Freehold as a stranger has it: a wheel in an environment, without the checkout, and without pip.

    `uv tool install` and a Debian package bring no pip either. Its packages are those of here.
    """

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.harness = FreeholdHarness(folder)
        self.home = self.harness.home
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=100)
        packages = sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)})
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
        self.python = environment / "bin" / "python"
        # Nothing is downloaded. Links to the checkout do not count in a path of this kind.
        needed = folder / "packages"
        needed.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if path.name.partition("-")[0] != "pip":
                (needed / path.name).symlink_to(path)
        only_here = {"PYTHONPATH": str(needed), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
        self.environment = {**self.harness.environment, **only_here}

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.python), "-m", "freehold.cli.main", *words],
            env=self.environment, cwd="/", capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip

    def version(self) -> str:
        return str(json.loads(self.run("version", "--json").stdout)["freehold"])

    def is_ready(self) -> bool:
        return self.run("status", "--json").returncode == 0


@pytest.fixture(scope="module")
def installed(present: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """With the home that version 0.1.0 made."""
    folder = tmp_path_factory.mktemp("home")
    unpack(GOLDEN / "0.1.0" / "home.tar.gz", folder)
    found = Installed(present, folder)
    yield found
    found.run("down")
    shutil.rmtree(folder, ignore_errors=True)


def hash_home(root: Path) -> dict[str, str]:
    """Everything that a version writes for itself. What grows while nothing is done is left out."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if (
            name.split("/")[0] not in ("versions", "logs", "workspace", "home", "agents", "keeper.lock")
            and path.is_file()
        ):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_a_version_that_does_not_get_ready_is_taken_back_with_its_data(installed: Installed, broken: Path) -> None:
    """It changed a database and wrote a file before it failed. All of it is as it was, byte for byte."""
    assert installed.run("up", "-d").returncode == 0, "the home of 0.1.0 is opened by this version"
    assert installed.run("down").returncode == 0
    before = hash_home(installed.home.root)
    done = installed.run("upgrade", "--from", str(broken))
    assert done.returncode == 1, done.stdout
    assert "Version 9.0.0 did not get ready: gateway is crash-looping" in done.stderr
    assert hash_home(installed.home.root) == before
    assert installed.version() == __version__
    assert not installed.is_ready(), "it did not run before"
    (aside,) = (installed.home.root / "versions").glob("failed-*")
    assert (aside / "left-behind").exists(), "what the new version wrote is kept aside"


def test_an_older_version_that_cannot_read_the_data_says_so_and_is_taken_back(
    installed: Installed, present: Path, tmp_path: Path
) -> None:
    """No migration goes back: the way back to an older format is the copy, or a backup."""
    text = (ROOT / "src/freehold/timeline/database.py").read_text()
    older = text.replace(f"\nFORMAT = {FORMAT}\n", f"\nFORMAT = {FORMAT - 1}\n")
    assert older != text
    release = make_release(present, tmp_path, "0.0.9", {"freehold/timeline/database.py": older})
    before = hash_home(installed.home.root)
    done = installed.run("upgrade", "--from", str(release))
    assert done.returncode == 1, done.stdout
    assert f"has format {FORMAT}; this Freehold knows formats up to {FORMAT - 1}" in done.stderr
    assert hash_home(installed.home.root) == before
    assert installed.version() == __version__


def test_a_killed_upgrade_is_taken_back_by_the_next_start(installed: Installed, broken: Path) -> None:
    """After kill -9 or a power loss. The keeper that starts is that of the version before, with its data."""
    assert installed.run("up", "-d").returncode == 0
    link = current_version(installed.home)
    command = [str(installed.python), "-m", "freehold.cli.main", "upgrade", "--from", str(broken)]
    with subprocess.Popen(
        command, env=installed.environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as upgrade:
        wait_until((installed.home.root / "left-behind").exists)
        upgrade.kill()
    assert link.resolve().name.startswith("9.0.0")
    wait_until(lambda: installed.run("down", "--now").returncode == 0)
    started = installed.run("up", "-d")
    assert started.returncode == 0, started.stdout + started.stderr
    assert installed.version() == __version__
    assert not (installed.home.root / "left-behind").exists()
    assert not link.is_symlink()
    assert installed.run("down").returncode == 0


def test_an_upgrade_of_a_running_home_comes_back_running(
    installed: Installed, broken: Path, working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First to a broken version, after which the old one runs again; then to one that works, which then runs the home."""
    monkeypatch.setitem(installed.environment, "FREEHOLD_BACKUP_TO", str(tmp_path / "backups"))
    assert installed.run("backup", "key").returncode == 0
    assert installed.run("up", "-d").returncode == 0
    assert installed.run("upgrade", "--from", str(broken)).returncode == 1
    assert installed.is_ready()
    assert installed.version() == __version__
    done = installed.run("upgrade", "--from", str(working))
    assert done.returncode == 0, done.stderr
    assert "- It is better." in done.stdout, "it reads its changes to the owner"
    steps = [line for line in done.stderr.splitlines() if line.endswith(" …")]
    assert steps.index("making a backup …") < steps.index("stopping Freehold …")
    assert json.loads(installed.run("backup", "list", "--json").stdout), "a backup was made first"
    assert installed.is_ready()
    assert installed.version() == "9.1.0", "the old command runs the new version"
    python = find_python(installed.home)
    assert python is not None
    status = json.loads(installed.run("status", "--json").stdout)
    running = Path(f"/proc/{status['keeper']['pid']}/cmdline").read_bytes().split(b"\0")[0]
    assert Path(os.fsdecode(running)).parent.parent.resolve() == current_version(installed.home).resolve()
    assert not list((installed.home.root / "versions").glob("before-*")), "no copy is left"


@contextlib.contextmanager
def run_as_service(installed: Installed) -> Iterator[None]:
    """As systemd runs a unit with Restart=always: the keeper is started again whenever it ends."""
    once = 'export SYSTEMD_EXEC_PID=$$; exec "$0" -m freehold.keeper --home "$1"'
    words = [
        "sh",
        "-c",
        'while :; do sh -c "$0" "$1" "$2"; done',
        once,
        str(installed.python),
        str(installed.home.root),
    ]
    service = subprocess.Popen(
        words, env=installed.environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(installed.is_ready)
        yield
    finally:
        service.kill()
        service.wait()
        installed.run("down", "--now")


def test_a_service_is_not_started_again_in_the_middle_of_an_upgrade(
    installed: Installed, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied does not change meanwhile, and the version before comes back by the service itself."""
    current_version(installed.home).unlink(missing_ok=True)
    installed.run("down")
    with run_as_service(installed):
        with monkeypatch.context() as patch:
            for name, value in installed.environment.items():
                patch.setenv(name, value)
            patch.setattr(trials, "SERVICE_TIMEOUT", 5.0)
            attempt = UpgradeTrial(installed.home, print)
            wheel = read_wheel(broken)
            environment = make_environment(wheel, attempt.folder / wheel.name)
            with attempt.hold(), pytest.raises(FreeholdError, match="its service is not ready") as caught:
                attempt.carry_out(environment, wheel.version)
            assert "{" not in caught.value.message, "in words"
        wait_until(installed.is_ready)
        assert installed.version() == __version__
        assert not (installed.home.root / "left-behind").exists()


def test_a_service_itself_runs_the_version_that_is_tried(installed: Installed, working: Path) -> None:
    current_version(installed.home).unlink(missing_ok=True)
    installed.run("down")
    with run_as_service(installed):
        done = installed.run("upgrade", "--without-backup", "--from", str(working))
        assert done.returncode == 0, done.stderr
        assert installed.version() == "9.1.0"
        keeper = json.loads(installed.run("status", "--json").stdout)["keeper"]["pid"]
        variables = Path(f"/proc/{keeper}/environ").read_bytes().split(b"\0")
        assert f"SYSTEMD_EXEC_PID={keeper}".encode() in variables, "it is the service that runs, and no second one"
    current_version(installed.home).unlink()


def test_without_the_backup_that_was_set_up_nothing_is_tried(
    installed: Installed, working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setitem(installed.environment, "FREEHOLD_BACKUP_TO", str(tmp_path / "file"))
    before = installed.version()
    done = installed.run("upgrade", "--from", str(working))
    assert done.returncode == 1
    assert "The backup failed" in done.stderr
    assert "--without-backup" in done.stderr
    assert installed.version() == before


def test_the_newest_version_of_the_index_is_taken_or_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is a folder here. pip reads it as it reads the one of the internet."""
    index = tmp_path / "index"
    index.mkdir()
    for version in ("9.3.0", "9.10.0"):
        write_wheel(index, "freehold", version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert download_wheel(None, tmp_path).version == "9.10.0"
    assert download_wheel("9.3.0", tmp_path).version == "9.3.0"
    with pytest.raises(FreeholdError) as caught:
        download_wheel("9.4.0", tmp_path)
    assert caught.value.code == "upgrade.failed"
    assert not list(tmp_path.glob(".download-*")), "nothing is left of it"


def write_wheel(index: Path, name: str, version: str, about: str = "", **modules: str) -> Path:
    path = index / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        facts = f"{name}-{version}.dist-info"
        archive.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{about}")
        archive.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{facts}/RECORD", "")
        for place, content in modules.items():
            archive.writestr(f"{name}/{place.replace('_', '/')}.py", content)
    return path


def test_optional_parts_that_are_here_are_installed_for_the_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real pip, with a folder as its index. The part `mesh` is here, because the tests need it; `absent` is nowhere."""
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index, "shiny", "1.0")
    write_wheel(index, "missing", "1.0")
    extras = 'Provides-Extra: mesh\nRequires-Dist: shiny; extra == "mesh"\n'
    extras += 'Provides-Extra: absent\nRequires-Dist: missing; extra == "absent"\n'
    release = read_wheel(write_wheel(index, "freehold", "9.5.0", extras, cli_main="print('freehold 9.5.0')"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    def list_installed(environment: VersionEnvironment) -> set[str]:
        packages = environment.folder.glob("lib/python*/site-packages/*.dist-info")
        return {path.name.partition("-")[0] for path in packages}

    with monkeypatch.context() as change:
        change.setattr(environments, "list_installed_extras", list)
        made = make_environment(release, tmp_path / release.name)
    assert list_installed(made) == {"freehold"}
    assert "mesh" in list_installed_extras()
    assert "absent" not in list_installed_extras()
    # It is complete, and lacks what has been installed here since.
    assert list_installed(make_environment(release, tmp_path / release.name)) == {"freehold", "shiny"}
    before = made.python.lstat().st_ino
    make_environment(release, tmp_path / release.name)
    assert made.python.lstat().st_ino == before, "a complete one is used again"


@pytest.mark.parametrize(
    ("lines", "installed"),
    [
        (["pytest>=8; extra == 'a'", "no-such-thing; extra == 'a'", 'click[x]>=8 ; extra == "b"', "gone"], ["b"]),
        (["pytest; python_version >= '3' and extra == \"c-d\"", "; extra == 'e'", "-x; extra == 'f'"], ["c-d"]),
        (None, []),
    ],
)
def test_a_part_is_here_when_all_of_its_packages_are(
    lines: list[str] | None, installed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: lines)
    assert list_installed_extras() == installed


def test_an_upgrade_that_was_killed_is_taken_back_by_the_next(tmp_path: Path) -> None:
    home = find_home(tmp_path)
    (tmp_path / "freehold.toml").write_text("old")
    said: list[str] = []
    trial = UpgradeTrial(home, said.append)
    with trial.hold():
        HomeCopy(home, trial.folder / "before-1").make()
        trial._write_journal(TrialJournal("9.0.0", None, "before-1", was_running=False))
        trial._point("/nowhere")
    (tmp_path / "freehold.toml").write_text("new")
    with UpgradeTrial(home, said.append).hold():
        assert (tmp_path / "freehold.toml").read_text() == "old"
        assert not current_version(home).is_symlink()
    assert said == ["an upgrade was interrupted: going back to the version before"]
    with UpgradeTrial(home, said.append).hold():
        assert len(said) == 1, "once"


def test_a_version_that_cannot_be_stopped_by_its_command_is_killed(tmp_path: Path) -> None:
    """Its command fails, and something holds the home. It is ended by a signal, and then the data comes back."""
    home = find_home(tmp_path)
    (tmp_path / "freehold.toml").write_text("old")
    broken = tmp_path / "versions" / "9.0.0" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    (tmp_path / "versions").chmod(0o700)
    program = "import sys, time\nfrom freehold.home import find_home\nfrom freehold.keeper.lock import lock_home\n"
    program += "with lock_home(find_home(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    trial = UpgradeTrial(home, print)
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "held\n"
        HomeCopy(home, trial.folder / "before-1").make()
        trial._write_journal(TrialJournal("9.0.0", None, "before-1", was_running=False))
        trial._point(str(broken.parent.parent))
        (tmp_path / "freehold.toml").write_text("new")
        with trial.hold():
            assert keeper.wait(30) == -9
    assert (tmp_path / "freehold.toml").read_text() == "old"


def test_an_upgrade_without_room_for_a_copy_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = find_home(tmp_path)
    (tmp_path / "freehold.toml").write_text("old")
    monkeypatch.setattr(home_copy, "SPARE_BYTES", 1 << 62)
    said: list[str] = []
    trial = UpgradeTrial(home, said.append)
    with trial.hold(), pytest.raises(FreeholdError) as caught:
        trial.carry_out(VersionEnvironment(tmp_path / "nowhere" / "bin" / "python"), "9.0.0")
    assert caught.value.code == "upgrade.no-space"
    assert said == []


def test_what_an_interrupted_copy_left_is_removed(tmp_path: Path) -> None:
    home = find_home(tmp_path)
    trial = UpgradeTrial(home, print)
    with trial.hold():
        for name in ("before-1", ".before-2", "failed-3"):
            deep = trial.folder / name / "history"
            deep.mkdir(parents=True)
            (deep / "file").write_text("kept")
    with trial.hold():
        assert sorted(one.name for one in trial.folder.iterdir()) == ["failed-3", "lock"]


def test_two_upgrades_do_not_run_at_once(tmp_path: Path) -> None:
    home = find_home(tmp_path)
    with UpgradeTrial(home, print).hold(), pytest.raises(FreeholdError) as caught, UpgradeTrial(home, print).hold():
        pass
    assert caught.value.code == "upgrade.already-running"


@pytest.mark.parametrize("stop", ["before the first", "between"])
def test_a_restore_of_a_copy_may_be_interrupted(tmp_path: Path, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = find_home(tmp_path / "home")
    (home.root / "vault").mkdir(parents=True)
    (home.root / "vault" / "key").write_text("secret")
    (home.root / "timeline.db").write_text("events")
    copy = HomeCopy(home, tmp_path / "before-1")
    copy.make()
    (home.root / "vault" / "key").write_text("changed")
    (home.root / "timeline.db").unlink()
    (home.root / "new.db").write_text("new")
    left = {"before the first": 0, "between": 2}[stop]
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with contextlib.suppress(KeyboardInterrupt):
            copy.restore(tmp_path / "failed-1")
    copy.restore(tmp_path / "failed-1")
    assert (home.root / "vault" / "key").read_text() == "secret"
    assert (home.root / "timeline.db").read_text() == "events"
    assert not (home.root / "new.db").exists()
    assert not (tmp_path / "before-1").exists()


def test_what_is_new_since_a_version_is_read_to_the_owner_and_nothing_when_it_is_older() -> None:
    text = "# Changelog\n\nIntroduction.\n\n## [0.3.0] - 2027-01-01\n\n- New.\n\n## 0.2.0\n\n- Old.\n"
    wheel = ReleaseWheel(Path("x.whl"), "0.3.0", "", text)
    assert wheel.describe_changes("0.2.0") == "## [0.3.0] - 2027-01-01\n\n- New."
    assert wheel.describe_changes("0.3.0") == ""
    assert wheel.describe_changes("0.4.0") == "", "going back is not told as news"


def test_a_file_that_is_no_wheel_of_freehold_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n")
    (tmp_path / "text.whl").write_text("text")
    for path in (other, tmp_path / "text.whl"):
        with pytest.raises(FreeholdError) as caught:
            read_wheel(path)
        assert caught.value.code == "upgrade.bad-file"


def test_a_version_that_somebody_else_could_have_put_there_is_not_run(tmp_path: Path) -> None:
    home = find_home(tmp_path)
    python = tmp_path / "versions" / "1.0" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    current_version(home).symlink_to("1.0")
    (tmp_path / "versions").chmod(0o700)
    assert find_python(home) is not None
    (tmp_path / "versions").chmod(0o777)
    assert find_python(home) is None
