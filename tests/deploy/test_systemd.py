"""systemd accepts the printed unit, and its restrictions do not break the isolation of the computer."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.deploy.cli import command
from freehold.deploy.systemd import render_unit, render_user_unit
from freehold.errors import FreeholdError
from freehold.home import find_home


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "freehold.service"
    shown = CliRunner().invoke(command, ["systemd", "--home", str(tmp_path / "home"), "--user", "games"])
    assert shown.exit_code == 0, shown.output
    unit.write_text(shown.output)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_of_a_user(tmp_path: Path) -> None:
    unit = tmp_path / "freehold.service"
    shown = CliRunner().invoke(command, ["systemd", "--home", str(tmp_path / "home"), "--as-user"])
    assert shown.exit_code == 0, shown.output
    unit.write_text(shown.output)
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
