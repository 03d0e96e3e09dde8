"""systemd accepts the printed unit, and its restrictions do not break the isolation of the computer."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.deploy.cli import command
from freehold.deploy.systemd import NO_NEEDS, UnitNeeds, find_closed_folder, find_needs, render_unit, render_user_unit
from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.manifest import load_manifest


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "freehold.service"
    shown = CliRunner().invoke(command, ["systemd", "--home", str(tmp_path / "home"), "--user", "games"])
    assert shown.exit_code == 0, shown.output
    unit.write_text(shown.stdout)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_of_a_user(tmp_path: Path) -> None:
    unit = tmp_path / "freehold.service"
    shown = CliRunner().invoke(command, ["systemd", "--home", str(tmp_path / "home"), "--as-user"])
    assert shown.exit_code == 0, shown.output
    unit.write_text(shown.stdout)
    done = subprocess.run(["systemd-analyze", "verify", "--user", unit], capture_output=True, text=True)
    assert "freehold.service" not in done.stderr, done.stderr
    both = CliRunner().invoke(command, ["systemd", "--as-user", "--user", "games"])
    assert both.exit_code == 2


def test_the_units_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/opt/freehold/bin/python")
    golden = Path(__file__).parent / "golden"
    home = find_home("/srv/freehold")
    assert render_unit("freehold", home) == (golden / "freehold.service").read_text()
    assert render_user_unit(home) == (golden / "freehold-user.service").read_text()


NEEDY = """
[backup]
to = "/mnt/disk/freehold"
[[computer.mounts]]
source = "~/books"
target = "/mnt/books"
[[computer.mounts]]
source = "/srv/shared"
target = "/mnt/shared"
writable = true
[gpu]
enabled = true
[security.exceptions.gpu]
reason = "models are trained here"
"""


def read_settings(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_a_service_may_write_what_the_manifest_names_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a backup to another disk would fail, and a mount of a home would be empty."""
    monkeypatch.setattr("sys.executable", "/opt/freehold/bin/python")
    (tmp_path / "freehold.toml").write_text(NEEDY)
    home, manifest = find_home("/srv/freehold"), load_manifest(tmp_path / "freehold.toml", {}).manifest
    plain, found = (
        read_settings(render_unit("nobody-here", home, needs))
        for needs in (NO_NEEDS, find_needs(manifest, "nobody-here", home))
    )
    assert found["ReadWritePaths"] == ["/srv/freehold -/mnt/disk/freehold -/srv/shared"]
    assert found["ProtectHome"] == ["yes"], "the user's own home is that of Freehold"
    assert found["PrivateDevices"] == ["no"]
    assert found["DevicePolicy"] == ["closed"]
    assert found["DeviceAllow"] == ["/dev/nvidia0 rw", "/dev/nvidiactl rw", "/dev/nvidia-uvm rw"]
    changed = {name for name in found if found[name] != plain.get(name)}
    assert changed == {"ReadWritePaths", "PrivateDevices", "DeviceAllow"}


def test_what_is_in_the_home_of_a_user_is_seen_by_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only, but for what is written. `~` is the home of the user of the service."""
    monkeypatch.setattr("sys.executable", "/opt/freehold/bin/python")
    user = pwd.getpwuid(os.geteuid())
    for manifest, written in (
        ('[backup]\nto = "sftp://nas/freehold"\nuser = "me"\n', "/srv/freehold"),
        ('[backup]\nto = "~/backups"\n', f"/srv/freehold -{user.pw_dir}/backups"),
        ('[[computer.mounts]]\nsource = "/home/me/books"\ntarget = "/mnt/books"\n', "/srv/freehold"),
    ):
        (tmp_path / "freehold.toml").write_text(manifest)
        home, loaded = find_home("/srv/freehold"), load_manifest(tmp_path / "freehold.toml", {}).manifest
        needs = find_needs(loaded, user.pw_name, home)
        found = read_settings(render_unit("freehold", home, needs))
        assert found["ProtectHome"] == ["read-only"], manifest
        assert found["ReadWritePaths"] == [written]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_with_everything_that_a_manifest_needs(tmp_path: Path) -> None:
    home, unit = tmp_path / "home", tmp_path / "freehold.service"
    home.mkdir()
    (home / "freehold.toml").write_text(NEEDY)
    shown = CliRunner().invoke(command, ["systemd", "--home", str(home), "--user", "games"])
    assert shown.exit_code == 0, shown.output
    assert f"\nReadWritePaths={home} -/mnt/disk/freehold -/srv/shared\n" in shown.stdout
    unit.write_text(shown.stdout)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("place", ["/tmp/backups", "/var/tmp/x", "/srv/a b", "/srv/%h", "backups"])
def test_a_folder_that_the_service_would_not_see_or_misread_is_refused(place: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        render_unit("freehold", find_home("/srv/freehold"), UnitNeeds(written=(Path(place),)))
    assert caught.value.code in ("deploy.unsupported", "deploy.odd-path")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that everybody may enter, and whose parents too. That of a test may be entered by its own user only."""
    with tempfile.TemporaryDirectory(prefix="freehold-", dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


def test_a_user_that_cannot_reach_the_program_or_the_home_is_told(
    open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `make up` in a home that others may not enter. systemd says it only when the service fails."""
    program, home, me = open_place / "me" / "bin" / "python", open_place / "srv", pwd.getpwuid(os.geteuid()).pw_name
    program.parent.mkdir(parents=True)
    monkeypatch.setattr("sys.executable", str(program))
    assert find_closed_folder("nobody-here", find_home(home)) is None
    (open_place / "me").chmod(0o700)
    assert find_closed_folder("nobody-here", find_home(home)) == open_place / "me"
    assert find_closed_folder(me, find_home(home)) is None
    told = CliRunner().invoke(command, ["systemd", "--home", str(home), "--user", "nobody-here"])
    assert told.exit_code == 0, told.output
    assert f"nobody-here may not enter {open_place / 'me'}." in told.stderr
    assert "may not enter" not in told.stdout, "what is printed is the unit"


def test_restrictions_that_break_bubblewrap_are_off() -> None:
    settings = [line.partition("=")[0] for line in render_unit("freehold", find_home("/srv/freehold")).splitlines()]
    for needed in (
        "RestrictNamespaces",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectHostname",
        "ProtectProc",
    ):
        assert needed not in settings
    for wall in ("NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "PrivateDevices", "RestrictSUIDSGID"):
        assert wall in settings


@pytest.mark.parametrize(
    ("user", "home"),
    [("root", "/srv/x"), ("a b", "/srv/x"), ("x\nUser=root", "/srv/x"), ("me", "/srv/a b"), ("me", "/srv/%h")],
)
def test_a_user_or_path_that_systemd_would_misread_is_refused(user: str, home: str) -> None:
    with pytest.raises(FreeholdError):
        render_unit(user, find_home(home))
