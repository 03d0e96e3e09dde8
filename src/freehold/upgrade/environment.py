"""The environment of one version: a folder with an interpreter and everything that the version needs."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.installed_version import CHOSEN
from freehold.upgrade.installed_extras import list_installed_extras
from freehold.upgrade.wheel import ReleaseWheel, read_wheel

INSTALL_TIMEOUT = 1800.0
COMMAND_TIMEOUT = 300.0
COMPLETE = "complete"
"""A file in an environment that lacks nothing. It names the optional parts that are installed."""


@dataclass(frozen=True)
class VersionEnvironment:
    python: Path

    @property
    def folder(self) -> Path:
        return self.python.parent.parent

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of this very version, whatever the home says. A Ctrl-C in the terminal does not reach it."""
        return subprocess.run(
            [str(self.python), "-m", "freehold.cli.main", *words],
            env={**os.environ, CHOSEN: "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
            process_group=0,
        )


def download_wheel(version: str | None, folder: Path) -> ReleaseWheel:
    """The newest, or that version, from the package index. Raises `upgrade.failed`."""
    wanted = "freehold" if version is None else f"freehold=={version}"
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as name:
        _run([*_find_pip(folder), "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", name, wanted])
        (found,) = Path(name).glob("*.whl")
        kept = folder / found.name
        found.replace(kept)
    return read_wheel(kept)


def make_environment(wheel: ReleaseWheel, folder: Path) -> VersionEnvironment:
    """Complete or not at all: an interrupted one is made anew, and so is one without an optional part that this
    environment has. Raises `upgrade.failed`."""
    environment = VersionEnvironment(folder / "bin" / "python")
    mark, extras = folder / COMPLETE, list_installed_extras()
    if mark.exists() and (_is_own(folder) or set(extras) <= set(mark.read_text().split())):
        return environment
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        install = ["--python", str(environment.python), "install", "--quiet", "--disable-pip-version-check"]
        _run([*_find_pip(folder.parent), *install, f"{wheel.path}[{','.join(extras)}]" if extras else str(wheel.path)])
        _check_version(environment, wheel)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    mark.write_text(" ".join(extras))
    return environment


def _is_own(folder: Path) -> bool:
    return folder.resolve() == Path(sys.prefix).resolve()


def _check_version(environment: VersionEnvironment, wheel: ReleaseWheel) -> None:
    found = environment.call("--version").stdout.strip().rpartition(" ")[2]
    if found != wheel.version:
        raise FreeholdError(
            "upgrade.failed", f"Version {wheel.version} was installed, and says that it is {found[:40]!r}"
        )


def _find_pip(folder: Path) -> list[str]:
    """The command of pip. Where this environment has none, it is in one of its own, which is made in `folder`.

    Freehold declares pip, but whoever packs it may leave it out.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    place = folder / "installer"
    pip = [str(place / "bin" / "python"), "-m", "pip"]
    try:
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode == 0:
            return pip
    except FileNotFoundError:
        pass
    uv = shutil.which("uv")
    if importlib.util.find_spec("ensurepip") is not None:
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
    elif uv is not None:
        _run([uv, "venv", "--quiet", "--seed", "--clear", "--python", sys.executable, str(place)])
    else:
        raise FreeholdError(
            "upgrade.no-program",
            "Neither pip nor uv is here to install the new version",
            hint="apt-get install python3-venv",
        )
    return pip


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise FreeholdError(
            "upgrade.failed",
            f"The new version could not be installed: {lines[-1][:300] if lines else 'no reason given'}",
            hint="Nothing was changed. Check the network and the version",
        )
