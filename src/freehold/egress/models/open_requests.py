"""Requests that were sent and have not ended, in a file that outlives this process.

It is written before a request is sent, without waiting for the disk: that survives `kill -9`, and costs microseconds.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

from freehold.egress.models.ledger import UsageRecord
from freehold.egress.models.usage import TokenCounts

FILE_NAME = "model-requests.jsonl"
MAX_BYTES = 1024 * 1024
"""From this size on the file is written anew, with the requests that still run."""


class OpenRequests:
    """One process at a time. `begin` and `end` raise OSError when the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: dict[int, bytes] = {}
        self._last = 0
        self._size = 0
        self._descriptor = -1

    def load(self) -> list[UsageRecord]:
        """The requests that had not ended when the last process did. Blocking. They stay until `clear`."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        found: dict[int, UsageRecord] = {}
        for line in lines:
            try:
                number, record = json.loads(line)
                if record is None:
                    found.pop(number, None)
                else:
                    found[number] = UsageRecord(**record | {"tokens": TokenCounts(**record["tokens"])})
            except (ValueError, TypeError, KeyError):
                continue  # the last line may be cut; its request was not sent
        return list(found.values())

    def clear(self) -> None:
        """Begins with an empty file. Blocking."""
        self.close()
        self._descriptor = os.open(
            self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        self._size = 0

    def begin(self, record: UsageRecord) -> int:
        """The number for `end`."""
        self._last += 1
        line = json.dumps([self._last, asdict(record)]).encode() + b"\n"
        self._write(line)
        self._running[self._last] = line
        return self._last

    def end(self, number: int) -> None:
        """Idempotent."""
        if self._running.pop(number, None) is None:
            return
        if not self._running:
            os.ftruncate(self._descriptor, 0)
            self._size = 0
        else:
            self._write(json.dumps([number, None]).encode() + b"\n")
            if self._size > MAX_BYTES:
                self._rewrite()

    def close(self) -> None:
        """Idempotent. What has not ended stays in the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: bytes) -> None:
        written = os.write(self._descriptor, line)
        self._size += written
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written")

    def _rewrite(self) -> None:
        """The old file stays in use when the disk is full."""
        draft = OpenRequests(self._path.with_name(f".{self._path.name}"))
        draft.clear()
        try:
            draft._write(b"".join(self._running.values()))
            draft._path.replace(self._path)
        except OSError:
            draft.close()
            raise
        self.close()
        self._descriptor, self._size = draft._descriptor, draft._size
