"""`pipx install freehold` and `uv tool install freehold`, as an owner types them: up to ready, an upgrade, and removed again.

The wheel is of this checkout and the packages are of the locked versions: constraints say so, and the commands are bare.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness
from tests.test_dist import ROOT, build
from tests.upgrade.test_upgrade import make_release

from freehold import __version__

pytestmark = pytest.mark.shared_processes
LOCK = Path(__file__).with_name("requirements.lock")
UNREACHABLE = ("Failed to establish a new connection", "Max retries exceeded", "error sending request", "dns error")
_PINNED = re.compile(r"^[A-Za-z0-9._-]+==[^\\\n]+", re.MULTILINE)


@dataclass(frozen=True)
class Installer:
    """A program that installs others, each into an environment of its own below `place`."""

    name: str
    install: tuple[str, ...]
    remove: tuple[str, ...]
    place: str

    def variables(self, user: Path) -> dict[str, str]:
        """Its usual folders, below another one than the user's own. Its settings and caches stay."""
        place, programs = str(user / self.place), str(user / ".local/bin")
        if self.name == "pipx":
            return {"PIPX_HOME": place, "PIPX_BIN_DIR": programs, "PIPX_MAN_DIR": str(user / ".local/share/man")}
        return {"UV_TOOL_DIR": place, "UV_TOOL_BIN_DIR": programs}


PIPX = Installer("pipx", ("pipx", "install", "freehold"), ("pipx", "uninstall", "freehold"), ".local/share/pipx")
UV = Installer("uv", ("uv", "tool", "install", "freehold"), ("uv", "tool", "uninstall", "freehold"), ".local/share/uv/tools")  # fmt: skip


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both programs."""
    place = tmp_path_factory.mktemp("installers")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=200)
    words = ["-m", "pip", "install", "-q", "--require-hashes", "--only-binary=:all:", "-r", str(LOCK)]
    run_or_skip([str(place / "bin" / "python"), *words], dict(os.environ), place)
    return place / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def run_or_skip(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=280, check=False
    )
    if done.returncode and any(told in done.stderr for told in UNREACHABLE):
        pytest.skip(f"no index of packages can be reached: {command[0]} installed nothing")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def check_needed(python: Path, environment: dict[str, str]) -> None:
    """What installs agents from PyPI and npm and makes images, and what runs WebAssembly. No installer brings it by itself."""
    subprocess.run([python, "-m", "pip", "--version"], env=environment, check=True, capture_output=True, timeout=100)
    found = "from freehold.agents.catalogue.npm import find_npm; import wasmtime; print(*find_npm())"
    done = subprocess.run(
        [python, "-c", found], env=environment, check=True, capture_output=True, text=True, timeout=100
    )
    npm = subprocess.run([*done.stdout.split(), "--version"], check=True, capture_output=True, text=True, timeout=100)
    assert re.match(r"\d+\.", npm.stdout)


@pytest.mark.parametrize("installer", [PIPX, UV], ids=lambda one: one.name)
def test_it_is_installed_runs_is_upgraded_and_removed(
    installer: Installer, installers: Path, wheel: Path, tmp_path: Path
) -> None:
    user, harness = tmp_path / "user", FreeholdHarness(tmp_path)
    user.mkdir()
    constraints = tmp_path / "constraints.txt"
    locked = _PINNED.findall((ROOT / "requirements/runtime.lock").read_text())
    constraints.write_text("\n".join([f"freehold @ {wheel.as_uri()}", *locked, ""]))
    environment = {name: value for name, value in harness.environment.items() if name != "PYTHONPATH"} | {
        **installer.variables(user),
        **dict.fromkeys(("PIP_CONSTRAINT", "UV_CONSTRAINT"), str(constraints)),
        **dict.fromkeys(("PIPX_DEFAULT_PYTHON", "UV_PYTHON"), sys.executable),
        "PIP_NO_COMPILE": "1",
        "PATH": f"{user}/.local/bin:{installers}:{os.environ['PATH']}",
    }
    run_or_skip(list(installer.install), environment, user)

    def freehold(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(user / ".local/bin/freehold"), *words]
        return subprocess.run(
            command, env=environment, cwd=user, capture_output=True, text=True, timeout=280, check=False
        )

    def read_version() -> str:
        return str(json.loads(freehold("version", "--json").stdout)["freehold"])

    started = freehold("up", "-d")
    try:
        assert started.returncode == 0, started.stderr
        assert read_version() == __version__
        check_needed((user / ".local/bin/freehold").resolve().with_name("python"), environment)
        constraints.write_text("\n".join([*locked, ""]))
        newer = make_release(wheel, tmp_path, "9.1.0", {})
        upgraded = freehold("upgrade", "--without-backup", "--from", str(newer))
        assert upgraded.returncode == 0, upgraded.stderr
        assert json.loads(freehold("status", "--json").stdout)["ready"]
        assert read_version() == "9.1.0"
        check_needed(harness.home.root / "versions/current/bin/python", environment)
    finally:
        stopped = freehold("down")
    assert stopped.returncode == 0, stopped.stderr
    told = freehold("uninstall", "--yes")
    assert told.returncode == 0, told.stderr
    assert read_version() == __version__, "the version of the upgrade is gone"
    (removal,) = [line for line in told.stdout.splitlines() if line.startswith("The program itself: ")]
    assert removal.removeprefix("The program itself: ").split() == list(installer.remove)
    run_or_skip(list(installer.remove), environment, user)
    assert not (user / ".local/bin/freehold").exists()
    assert harness.home.timeline.exists(), "the data is kept"
