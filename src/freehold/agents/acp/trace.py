"""With FREEHOLD_TRACE=FOLDER every line exchanged with an agent is written to a file that only the owner can read."""

import logging
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

MAX_FILE_SIZE = 32 * 1024 * 1024
"""Bytes. A full file is renamed to `.1` and replaces the one before."""

log = logging.getLogger("freehold.agents.trace")
_NAME = re.compile(r"[^A-Za-z0-9_.-]")


class AcpTrace:
    """The trace of one agent in one session. Secrets (placeholders, tokens) are masked before a line is written.

    When the disk is full the trace ends; the session goes on.
    """

    def __init__(self, agent: str, session: str, secrets: Collection[str], *, max_size: int = MAX_FILE_SIZE) -> None:
        folder = os.environ.get("FREEHOLD_TRACE")
        self._path = Path(folder) / _NAME.sub("_", f"{agent}-{session}.jsonl") if folder else None
        # The longest first: one may be a part of another.
        self._secrets = sorted({secret.encode() for secret in secrets if secret}, key=len, reverse=True)
        self._max_size = max_size
        self._size = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Callable[[str, bytes], None] | None:
        """The function that writes a line; None when there is no trace."""
        if self._path is None:
            return None
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open(self._path)
        except OSError as error:
            log.warning("cannot write a trace of this session", extra={"error": str(error)})
            return None
        return self._write

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        self._file = os.fdopen(descriptor, "ab", buffering=0)
        self._size = os.fstat(descriptor).st_size

    def _write(self, direction: str, line: bytes) -> None:
        if self._file is None or self._path is None:
            return
        for secret in self._secrets:
            line = line.replace(secret, b"***")
        written = b"%s %s\n" % (b">" if direction == "out" else b"<", line.strip())
        try:
            if self._size and self._size + len(written) > self._max_size:
                self._file.close()
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                self._open(self._path)
            self._file.write(written)
            self._size += len(written)
        except OSError as error:
            self._file.close()
            self._file = None
            log.warning("the trace of this session ends: it cannot be written", extra={"error": str(error)})
