"""The environment of one version: a folder with an interpreter and everything that the version needs."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.installed_version import CHOSEN
from freehold.upgrade.wheel import ReleaseWheel, read_wheel

INSTALL_TIMEOUT = 1800.0
COMMAND_TIMEOUT = 300.0


@dataclass(frozen=True)
class VersionEnvironment:
    python: Path

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of this very version, whatever the home says."""
        return subprocess.run(
            [str(self.python), "-m", "freehold.cli.main", *words],
            env={**os.environ, CHOSEN: "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )


def download_wheel(version: str | None, folder: Path) -> ReleaseWheel:
    """The newest, or that version, from the package index. Raises `upgrade.failed`."""
    wanted = "freehold" if version is None else f"freehold=={version}"
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as name:
        _pip("download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", name, wanted)
        (found,) = Path(name).glob("*.whl")
        kept = folder / found.name
        found.replace(kept)
    return read_wheel(kept)


def make_environment(wheel: ReleaseWheel, folder: Path) -> VersionEnvironment:
    """Complete or not at all: an interrupted one is made anew. Raises `upgrade.failed`."""
    environment = VersionEnvironment(folder / "bin" / "python")
    mark = folder / "complete"
    if mark.exists():
        return environment
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        _pip("--python", str(environment.python), "install", "--quiet", "--disable-pip-version-check", str(wheel.path))
        _check_version(environment, wheel)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    mark.touch()
    return environment


def _check_version(environment: VersionEnvironment, wheel: ReleaseWheel) -> None:
    found = environment.call("--version").stdout.strip().rpartition(" ")[2]
    if found != wheel.version:
        raise FreeholdError(
            "upgrade.failed", f"Version {wheel.version} was installed, and says that it is {found[:40]!r}"
        )


def _pip(*words: str) -> None:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        raise FreeholdError(
            "upgrade.no-program",
            "This environment has no pip, which installs the new version",
            hint="uv tool install --with pip freehold, or python -m ensurepip",
        )
    _run([sys.executable, "-m", "pip", *words])


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
