"""Runs a program of the build, and turns its failure into an error that shows what it said."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from freehold.errors import FreeholdError

COMMAND_TIMEOUT = 1800.0
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIXED_ENVIRONMENT = {"PATH": SEARCH, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""Of the environment of the owner nothing may change what is built."""


def require_program(name: str, package: str) -> str:
    """Its path. Raises `image.not-installed`, which names the Debian package that has it."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        raise FreeholdError(
            "image.not-installed", f"{name}, which builds images, is not installed", hint=f"apt install {package}"
        )
    return found


def run_build_command(
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str] = FIXED_ENVIRONMENT,
    folder: Path | None = None,
    inherit: bool = False,
    may_fail: bool = False,
) -> str:
    """Its standard output. With `inherit` the owner's environment is kept: proxies and settings of a package index."""
    name = Path(words[0]).name
    try:
        done = subprocess.run(
            [os.fspath(word) for word in words],
            env={**os.environ, **environment} if inherit else dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FreeholdError(
            "image.command-failed",
            f"{name} did not end within {COMMAND_TIMEOUT:.0f} s",
            hint="Is the package index slow, or the disk full? Try again",
        ) from error
    except OSError as error:
        raise FreeholdError(
            "image.command-failed", f"{name} could not be started: {error.strerror}", hint="Install it, then try again"
        ) from error
    if done.returncode and not may_fail:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise FreeholdError(
            "image.command-failed",
            f"{name} failed with exit code {done.returncode}: {said}",
            hint="Read what it says above; freehold build lock chooses the packages again",
        )
    return done.stdout
