"""Holds a restore where it reads a stored content, before the first file changes, for as long as a test wants."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.condition import wait_until

from freehold.history.calls import TakeSnapshot
from freehold.history.diff import MAX_DIFF_BYTES
from freehold.home import Home
from freehold.keeper.client import call_keeper

SMALL_FILES = 300


class HeldRestore:
    """A stored content whose file is a FIFO: whoever opens it waits."""

    def __init__(self, chunk: Path) -> None:
        self._chunk = chunk
        self._content = chunk.read_bytes()
        self._kept = chunk.with_name(f"{chunk.name}.kept")
        chunk.rename(self._kept)
        os.mkfifo(chunk, 0o600)
        self._fifo = os.open(chunk, os.O_PATH | os.O_CLOEXEC)
        self._writer: int | None = None

    def wait(self) -> None:
        """Until a restore has come to the content. It goes no further before `release`."""
        wait_until(self._is_opened)

    def release(self) -> None:
        """The restore that waits reads the content and goes on. Idempotent."""
        if self._kept.exists():
            self._kept.rename(self._chunk)
        if self._is_opened():
            assert self._writer is not None
            os.set_blocking(self._writer, True)
            with suppress(BrokenPipeError), os.fdopen(self._writer, "wb") as writer:
                writer.write(self._content)
            self._writer = None

    def close(self) -> None:
        self.release()
        os.close(self._fifo)

    def _is_opened(self) -> bool:
        if self._writer is None:
            with suppress(OSError):  # ENXIO: nobody reads
                self._writer = os.open(f"/proc/self/fd/{self._fifo}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._writer is not None


@contextmanager
def hold_undo(home: Home) -> Iterator[HeldRestore]:
    """The next undo of the running Freehold brings back many small files and then a large one, at which it is held.

    It is too large for a diff, so that nothing else reads it.
    """
    folder = home.workspace / f"held-{secrets.token_hex(4)}"
    folder.mkdir()
    large = folder / "large"
    chunks = set(home.history.glob("chunks/*/*"))
    large.write_bytes(secrets.token_bytes(MAX_DIFF_BYTES + 1))
    for number in range(SMALL_FILES):
        (folder / f"{number:03}").write_text(f"old {number}")
    call_keeper(home, TakeSnapshot())
    large.write_text("new")
    for number in range(SMALL_FILES):
        (folder / f"{number:03}").write_text(f"a new text of {number}")
    call_keeper(home, TakeSnapshot())
    held = HeldRestore(min(set(home.history.glob("chunks/*/*")) - chunks))
    try:
        yield held
    finally:
        held.close()
