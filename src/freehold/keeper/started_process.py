"""A process on the host as the keeper starts it, at once or before the keeper knows whether it may run."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.home import Home
from freehold.keeper.orphans import bind_to_parent

PROGRAM_SETTINGS = {"MALLOC_ARENA_MAX": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""For Freehold's own programs: less memory for their threads, and no plugin of another package that is installed."""
HIDDEN = "hidden"


@dataclass(frozen=True)
class StartedProcess:
    """It leads its own process group. `outputs` are the reading ends of its pipes: stdout and stderr."""

    process: "subprocess.Popen[bytes]"
    outputs: Mapping[str, int]


def start_process(
    argv: list[str], environment: Mapping[str, str], cwd: Path | None = None, descriptors: Sequence[int] = ()
) -> StartedProcess:
    pipes = {"stdout": os.pipe(), "stderr": os.pipe()}
    try:
        # Not asyncio's subprocess: it uses one thread for each child and identifies a child only by its pid.
        process = subprocess.Popen(
            bind_to_parent(argv),
            stdin=subprocess.DEVNULL,
            stdout=pipes["stdout"][1],
            stderr=pipes["stderr"][1],
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError:
        for reading, _ in pipes.values():
            os.close(reading)
        raise
    finally:
        for _, writing in pipes.values():
            os.close(writing)
    return StartedProcess(process, {stream: reading for stream, (reading, _) in pipes.items()})


def program_environment(hidden: Collection[str] = ()) -> dict[str, str]:
    """What is hidden is there, so that the manifest that names it stays valid, and has another value."""
    environ = {name: HIDDEN if name in hidden else value for name, value in os.environ.items()}
    return {**environ, **PROGRAM_SETTINGS}


def gateway_command(home: Home) -> list[str]:
    return [sys.executable, "-m", "freehold.gateway", "--home", str(home.root)]


class EarlyProcess:
    """Loads its modules while the keeper boots, and does nothing else until it is taken.

    It is started with the option `--wait FD`: it goes on when it reads a byte there, and ends when the pipe is closed.
    """

    def __init__(self, argv: list[str], environment: Mapping[str, str]) -> None:
        reading, self._signal = os.pipe()
        try:
            self._started: StartedProcess | None = start_process(
                [*argv, "--wait", str(reading)], environment, descriptors=[reading]
            )
        except OSError:  # the keeper tries again when it needs the program, and says why it cannot
            self._started = None
            os.close(self._signal)
        finally:
            os.close(reading)

    def take(self) -> StartedProcess | None:
        """Let it go on. It now belongs to the caller. None when it was taken or closed before."""
        started, self._started = self._started, None
        if started is not None:
            with contextlib.suppress(OSError):  # it has ended already: the caller will see that
                os.write(self._signal, b"\n")
            os.close(self._signal)
        return started

    def close(self) -> None:
        """End it unless it was taken. Idempotent."""
        started, self._started = self._started, None
        if started is not None:
            started.process.kill()
            started.process.wait()
            for descriptor in (self._signal, *started.outputs.values()):
                os.close(descriptor)
