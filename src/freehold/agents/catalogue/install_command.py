"""Runs npm or pip for an installation: with a time limit, with progress, and without leaving processes behind."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from freehold.errors import FreeholdError

INSTALL_TIMEOUT = 1800
PROGRESS_INTERVAL = 0.25
MAX_REASON = 2000

Progress = Callable[[str, int, int], None]
"""What is being done, how many packages are installed, and how many there will be (0: not known yet)."""


def run_command(command: list[str], folder: Path, report_progress: Callable[[], None]) -> None:
    """Blocks until the command has ended. Raises `agent.install-failed` with the end of its output."""
    deadline = time.monotonic() + INSTALL_TIMEOUT
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            umask=0o022,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    code = program.wait(PROGRESS_INTERVAL)
                    break
                except subprocess.TimeoutExpired:
                    report_progress()
                    if time.monotonic() > deadline:
                        raise FreeholdError(
                            "agent.install-failed",
                            f"The installation took more than {INSTALL_TIMEOUT} s and was stopped",
                            hint="Try again; packages that were downloaded are kept",
                        ) from None
        except BaseException:
            os.killpg(program.pid, 9)
            program.wait()
            raise
        report_progress()
        if code:
            output.seek(0)
            text = find_reason(output.read().decode(errors="replace"))
            raise FreeholdError(
                "agent.install-failed",
                f"The installation failed: {text or f'exit code {code}'}",
                hint="Check the network and try again; packages that were downloaded are kept",
            )


def find_reason(output: str) -> str:
    """Why npm or pip failed. npm writes the reason first, and how it is used after it; others write it last."""
    reasons = [line.removeprefix("npm error").strip() for line in output.splitlines() if line.startswith("npm error")]
    for place, line in enumerate(reasons):
        if line.startswith(("Usage:", "A complete log")):
            del reasons[place:]
            break
    words = "\n".join(dict.fromkeys(filter(None, reasons)))
    return words[:MAX_REASON] or output[-MAX_REASON:].strip()
