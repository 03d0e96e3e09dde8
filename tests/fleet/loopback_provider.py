"""A provider whose machines are programs at addresses of their own of this machine: `start FOLDER` and `stop FOLDER`."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_ports


def start(folder: Path, name: str) -> None:
    """Fails while there is a file `refuse`. Its number is new: that of one which has just ended may be in use."""
    if (folder / "refuse").exists():
        sys.exit((folder / "refuse").read_text())
    number = len(list(folder.glob("*.log")))
    words = ["--folder", str(folder / name), "--address", f"127.0.0.{20 + number}", "--port", str(free_ports(1)[0])]
    words += ["--ports", "0", "--cpus", "2", "--memory", "2GiB"]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "freehold.cli.main", "fleet", "join", os.environ["FREEHOLD_JOIN_CODE"], *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / f"{name}.pid").write_text(str(process.pid))


def stop(folder: Path, name: str) -> None:
    path = folder / f"{name}.pid"
    if path.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGTERM)
        path.unlink()


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]](Path(sys.argv[2]), os.environ["FREEHOLD_NODE"])
