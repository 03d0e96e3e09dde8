"""The owner's commands that start and end a machine at a provider. They run outside of Ray's sandbox."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from freehold.errors import FreeholdError

COMMAND_TIMEOUT = 600.0
MAX_SHOWN = 300
READ_SIZE = 4096
MAX_LAST_READS = 64
"""A pipe holds 64 KiB. Something that the command has left running may write for ever."""


async def run_provider_command(
    command: Sequence[str], variables: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Until it ends; what it leaves running in the background is not waited for.

    Raises `fleet.failed` with the end of what it said. One that is cancelled or takes too long ends with all that it
    has started. A secret is in a variable, never in an argument.
    """
    with _Words() as words:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=words.writing,
                env={**environment, **variables},
                start_new_session=True,
            )
        except OSError as error:
            raise _failure(command, error.strerror or str(error)) from None
        words.close_writing()
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT):
                await process.wait()
        except TimeoutError:
            raise _failure(command, f"it did not end within {COMMAND_TIMEOUT:g} s") from None
        finally:
            await _end(process)
        if process.returncode != 0:
            raise _failure(command, f"exit code {process.returncode}. {words.read_end()}")


class _Words:
    """A pipe of which only the end is kept."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._end = b""

    def __enter__(self) -> "_Words":
        asyncio.get_running_loop().add_reader(self._reading, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._reading)
        os.close(self._reading)
        self.close_writing()

    def close_writing(self) -> None:
        """Idempotent. The command has its own."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def read_end(self) -> str:
        for _ in range(MAX_LAST_READS):
            if not self._read():
                break
        return self._end.decode(errors="replace").strip()[-MAX_SHOWN:]

    def _read(self) -> bool:
        """Whether there was something."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._reading, READ_SIZE)
            if not data:  # nobody can write any more
                asyncio.get_running_loop().remove_reader(self._reading)
        self._end = (self._end + data)[-4 * MAX_SHOWN :]
        return bool(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """With its whole session, unless it has ended by itself."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _failure(command: Sequence[str], why: str) -> FreeholdError:
    return FreeholdError(
        "fleet.failed",
        f"{command[0]} has failed: {why}",
        hint="It is the command of [fleet.autoscaler] in freehold.toml, and is tried again",
    )
