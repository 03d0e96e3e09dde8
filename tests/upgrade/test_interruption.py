"""An upgrade that is killed, stopped by Ctrl-C or loses its terminal: the home is that of one version, whole."""

import contextlib
import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.backup_stores import DeathAt, run_in_child

from freehold import installed_version
from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.installed_version import (
    begin_start,
    current_version,
    find_python,
    is_on_trial,
    newest_version,
    note_ready,
    starts_lock,
)
from freehold.upgrade import home_copy
from freehold.upgrade.environment import VersionEnvironment
from freehold.upgrade.trial import MAX_KEPT, UpgradeTrial

MAX_STEPS = 200
STORES = ("freehold.toml", "timeline.db")
WATCHED = ("rename", "replace", "unlink", "symlink_to", "rmdir", "mkdir", "touch")


class FakeVersions:
    """Two versions of which each writes its name into every store when it is started. No process is started.

    `step` is called with each command.
    """

    def __init__(self, folder: Path) -> None:
        self.home = find_home(folder / "home")
        self.home.root.mkdir(mode=0o700)
        self.step: Callable[[str], None] = lambda _: None
        self.gets_ready = True
        self.running = folder / "running"
        self.old, self.new = (self._install(version) for version in ("1.0", "2.0"))
        current_version(self.home).symlink_to(self.old.folder)
        self._write("1.0")
        self.running.write_text("1.0")

    def _install(self, version: str) -> VersionEnvironment:
        environment = VersionEnvironment(self.home.root / "versions" / f"{version}-0123abcd" / "bin" / "python")
        environment.python.parent.mkdir(parents=True)
        (self.home.root / "versions").chmod(0o700)
        environment.python.touch()
        (environment.folder / "complete").touch()
        return environment

    def _write(self, version: str) -> None:
        for name in STORES:
            (self.home.root / name).write_text(version)

    def call(self, environment: VersionEnvironment, *words: str) -> "subprocess.CompletedProcess[str]":
        version = environment.folder.name.partition("-")[0]
        self.step(f"{words[0]} {version}")
        ready = self.running.exists() and (version == "1.0" or self.gets_ready)
        if words[0] == "up":
            self._write(version)
            self.running.write_text(version)
            if version == "1.0" or self.gets_ready:
                self._note_ready(environment)
        elif words[0] == "down":
            self.running.unlink(missing_ok=True)
        text = json.dumps({"ready": ready}) if self.running.exists() else ""
        return subprocess.CompletedProcess(words, 0, text, "")

    def _note_ready(self, environment: VersionEnvironment) -> None:
        """As the keeper of that version does."""
        kept, sys.prefix = sys.prefix, str(environment.folder)
        try:
            note_ready(self.home)
        finally:
            sys.prefix = kept

    def upgrade(self) -> None:
        trial = UpgradeTrial(self.home, lambda _: None)
        with trial.hold():
            trial.carry_out(self.new, "2.0")

    def find_state(self) -> str:
        """The version whose data is there and that runs the home. There is only one."""
        (found,) = {(self.home.root / name).read_text() for name in STORES}
        assert current_version(self.home).resolve().name.partition("-")[0] == found
        return found


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeVersions:
    found = FakeVersions(tmp_path)
    monkeypatch.setattr(VersionEnvironment, "call", lambda self, *words: found.call(self, *words))
    monkeypatch.setattr(home_copy, "SPARE_BYTES", 0)
    return found


def _end_abandoned(versions: FakeVersions) -> Path | None:
    return UpgradeTrial(versions.home, lambda _: None).end_abandoned()


def _watch_files(death: Callable[[str], None]) -> None:
    """Call it before and after everything that changes the home. Only for a process that ends with this."""
    for name in WATCHED:
        real = getattr(Path, name)

        def watched(*words: object, real: Callable[..., object] = real, name: str = name, **options: object) -> object:
            death(f"before {name}")
            done = real(*words, **options)
            death(f"after {name}")
            return done

        setattr(Path, name, watched)
    real_run = home_copy._run

    def run(*command: str) -> None:
        death(f"before {command[0]}")
        real_run(*command)

    home_copy._run = run


@pytest.mark.parametrize("gets_ready", [True, False])
def test_an_upgrade_killed_at_any_step_is_ended_by_the_next_start(
    versions: FakeVersions, tmp_path: Path, gets_ready: bool
) -> None:
    """Also if that is killed. A version that was ready keeps what it wrote; any other is taken back with all of it."""
    versions.gets_ready = gets_ready
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-a", versions.home.root, kept], check=True)
    seen = set()
    for number in range(MAX_STEPS):
        subprocess.run(["rm", "-rf", versions.home.root], check=True)
        subprocess.run(["cp", "-a", kept, versions.home.root], check=True)
        versions.running.write_text("1.0")

        def upgrade(number: int = number) -> None:
            death = DeathAt(number)
            versions.step = death
            _watch_files(death)
            with contextlib.suppress(FreeholdError):
                versions.upgrade()

        def end(number: int = number) -> None:
            _watch_files(DeathAt(number % 12))
            _end_abandoned(versions)

        ended = run_in_child(upgrade)
        if ended:
            break
        versions.running.unlink(missing_ok=True)
        run_in_child(end)
        _end_abandoned(versions)
        seen.add(versions.find_state())
        assert not is_on_trial(versions.home)
    else:
        raise AssertionError("the upgrade never came to its end")
    assert number > 20, "too few steps were tried"
    assert versions.find_state() == ("2.0" if gets_ready else "1.0")
    assert seen == ({"1.0", "2.0"} if gets_ready else {"1.0"})
    with UpgradeTrial(versions.home, lambda _: None).hold():
        assert not list((versions.home.root / "versions").glob("*before-*")), "no copy is left"


@contextlib.contextmanager
def _die_when_ready(versions: FakeVersions) -> Iterator[None]:
    """The upgrade is killed before it hears that the new version is ready."""

    def step(what: str) -> None:
        if what == "status 2.0":
            os.kill(os.getpid(), signal.SIGKILL)

    versions.step = step
    assert not run_in_child(versions.upgrade)
    versions.step = lambda _: None
    yield


def test_a_version_that_worked_since_a_killed_upgrade_is_not_taken_back_by_the_next(versions: FakeVersions) -> None:
    """Weeks later the owner upgrades again."""
    with _die_when_ready(versions):
        assert not is_on_trial(versions.home), "it is kept: backups go on"
        (versions.home.root / "timeline.db").write_text("2.0")
        with UpgradeTrial(versions.home, lambda _: None).hold():
            assert versions.find_state() == "2.0"


def test_a_start_does_not_end_the_trial_of_an_upgrade_that_works(versions: FakeVersions) -> None:
    """Its keeper is one of these starts."""
    versions.gets_ready = False

    def step(what: str) -> None:
        if what == "up 2.0":
            assert is_on_trial(versions.home)
            assert _end_abandoned(versions) is None
            assert is_on_trial(versions.home)

    versions.step = step
    with pytest.raises(FreeholdError):
        versions.upgrade()
    assert versions.find_state() == "1.0"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_upgrade_that_is_stopped_goes_back_at_once(versions: FakeVersions, number: signal.Signals) -> None:
    """And a second signal does not stop that."""
    called = []

    def step(what: str) -> None:
        called.append(what)
        if what in ("up 2.0", "down 2.0", "up 1.0"):
            os.kill(os.getpid(), number)

    def upgrade() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        versions.step = step
        with pytest.raises(KeyboardInterrupt):
            versions.upgrade()
        assert called[-1] == "up 1.0", "it ran before"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    assert run_in_child(upgrade)
    assert versions.find_state() == "1.0"


def test_a_version_that_hangs_at_its_start_is_taken_back(versions: FakeVersions) -> None:
    def step(what: str) -> None:
        if what == "up 2.0":
            versions._write("2.0")
            raise subprocess.TimeoutExpired("up", 300.0)

    versions.step = step
    with pytest.raises(FreeholdError, match="it did not get ready in time"):
        versions.upgrade()
    assert versions.find_state() == "1.0"
    assert versions.running.read_text() == "1.0"


def test_an_upgrade_outlasts_its_terminal(versions: FakeVersions) -> None:
    """A session over SSH that is lost sends SIGHUP, and nothing can be written any more."""

    def lose(_: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        raise OSError("the terminal is gone")

    trial = UpgradeTrial(versions.home, lose)
    with trial.hold():
        trial.carry_out(versions.new, "2.0")
    assert versions.find_state() == "2.0"


def test_the_start_that_goes_back_becomes_the_version_before(
    versions: FakeVersions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no link named it: it was installed outside of the home."""
    current_version(versions.home).unlink()
    versions.gets_ready = False
    with _die_when_ready(versions):
        started: list[Path] = []
        monkeypatch.setattr(os, "execve", lambda python, *_: started.append(python))
        monkeypatch.setattr(sys, "prefix", str(versions.new.folder))
        begin_start("freehold.keeper", ["--home", str(versions.home.root)])
        assert started == [Path(sys.executable)]
        assert not current_version(versions.home).is_symlink()


def test_a_home_that_cannot_be_brought_back_is_not_opened(
    versions: FakeVersions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions.gets_ready = False
    with _die_when_ready(versions):
        with monkeypatch.context() as patch:
            patch.setattr(home_copy.HomeCopy, "restore", _fail)
            with pytest.raises(SystemExit):
                begin_start("freehold.keeper", ["--home", str(versions.home.root)])
        assert "cannot be brought back: the disk is read-only" in capsys.readouterr().err
        _end_abandoned(versions)
        assert versions.find_state() == "1.0"


def _fail(*_: object) -> None:
    raise OSError("the disk is read-only")


def test_no_upgrade_copies_while_a_keeper_begins(versions: FakeVersions) -> None:
    """From the choice of the version until it has locked the home."""
    with UpgradeTrial(versions.home, print)._hold_starts():
        pass
    current_version(versions.home).unlink()
    heard: list[str] = []
    start = begin_start("freehold.keeper", ["--home", str(versions.home.root)])
    announce = start.watch(lambda event, _: heard.append(event))
    announce("stage", {"stage": "manifest"})
    assert not _can_hold_starts(versions.home)
    announce("stage", {"stage": "paths"})
    assert _can_hold_starts(versions.home)
    assert heard == ["stage", "stage"]


def _can_hold_starts(home: Home) -> bool:
    with starts_lock(home).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_newer_version_that_was_installed_later_runs(versions: FakeVersions, monkeypatch: pytest.MonkeyPatch) -> None:
    """By apt or pipx, after an upgrade. One that the upgrade has replaced does not come back."""
    link = current_version(versions.home)
    for own, runs_itself in (("0.9", False), ("1.0", False), ("1.0.1", True), ("1.0rc1", False), ("0.10", False)):
        monkeypatch.setattr(installed_version, "__version__", own)
        assert (find_python(versions.home) is None) == runs_itself, own
    monkeypatch.setattr(installed_version, "__version__", "1.5")
    (link / "replaced").write_text("1.5")
    assert find_python(versions.home) is not None, "the owner chose an older one"
    monkeypatch.setattr(installed_version, "__version__", "1.6")
    assert find_python(versions.home) is None
    monkeypatch.setattr(sys, "prefix", str(versions.new.folder))
    assert find_python(versions.home) is not None, "what is in the home itself follows the link"


def test_versions_are_compared_as_those_of_packages() -> None:
    ordered = ["0.9", "0.10.dev1", "0.10a2", "0.10rc1", "0.10", "0.10.post1", "0.10.1", "1.0"]
    for older, newer in itertools.pairwise(ordered):
        assert newest_version(older, newer, "") == newer
        assert newest_version(newer, older, "what?") == newer


def test_old_environments_and_failed_homes_do_not_pile_up(versions: FakeVersions) -> None:
    """Those used last are kept, and the one that runs."""
    folder = versions.home.root / "versions"
    for number in range(4):
        versions.gets_ready = False
        with pytest.raises(FreeholdError):
            versions.upgrade()
        (folder / f"0.{number}-0123abcd").mkdir()
        (folder / f"0.{number}-0123abcd" / "complete").touch()
        os.utime(folder / f"0.{number}-0123abcd", (number, number))
    versions.gets_ready = True
    versions.upgrade()
    assert len(list(folder.glob("failed-*"))) == MAX_KEPT
    assert sorted(one.name for one in folder.glob("*-0123abcd")) == ["1.0-0123abcd", "2.0-0123abcd"]
