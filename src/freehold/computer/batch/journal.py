"""The journal of a batch: one line a step, so that a batch goes on after every process was killed.

A line is written before what it announces (`begun`), or after what it tells has happened (all others). A last line that
was cut off in the middle counts as not written.
"""

import asyncio
import fcntl
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from freehold.computer.batch.task import JournalEvent, WorkLabel
from freehold.errors import FreeholdError
from freehold.strict_json import EpochSeconds, WrongShape, decode, encode

FILE = "journal.jsonl"
FORMAT = 1
MAX_ERROR = 500
"""Characters of an error that are kept."""


@dataclass(frozen=True)
class BatchHeader:
    """The first line: what the batch is."""

    format: int
    id: str
    work: WorkLabel
    inputs: tuple[str, ...]
    created: EpochSeconds


class BatchJournal:
    """One process at a time has it open. `events` are those of before."""

    def __init__(self, path: Path, descriptor: int, header: BatchHeader, events: list[JournalEvent]) -> None:
        self.path = path
        self.header = header
        self.events = events
        self._descriptor = descriptor
        self._written = self._synced = 0
        self._syncing = asyncio.Lock()

    @classmethod
    def open(cls, folder: Path, work: WorkLabel, inputs: tuple[str, ...]) -> Self:
        """Begin one in an empty or missing folder, or go on with one of the same work and inputs.

        Raises `batch.folder-in-use`, `batch.not-empty`, `batch.changed`, `batch.unreadable` and `batch.disk-error`.
        """
        path = folder / FILE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists() and any(folder.iterdir()):
                raise FreeholdError(
                    "batch.not-empty", f"{folder} has files that are not those of a batch", hint="Choose another folder"
                )
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise FreeholdError("batch.disk-error", f"Cannot open {path}: {error.strerror}") from None
        try:
            _lock(descriptor, folder)
            header, events = _read(path, descriptor)
            if header is None:
                header = BatchHeader(FORMAT, secrets.token_hex(8), work, inputs, time.time())
                _write_line(descriptor, encode(header))
                _sync_folder(folder)
            _check_same(header, work, inputs, folder)
            return cls(path, descriptor, header, events)
        except BaseException:
            os.close(descriptor)
            raise

    def append(self, event: JournalEvent) -> None:
        """In the file when this returns, so that no kill loses it. `sync` keeps it over a power cut as well."""
        if event.error is not None and len(event.error) > MAX_ERROR:
            raise ValueError("an error is cut before it is stored")
        _write_line(self._descriptor, encode(event))
        self._written += 1

    async def sync(self) -> None:
        """Everything that was appended is on the disk. Those who come meanwhile share the next round."""
        wanted = self._written
        async with self._syncing:
            if self._synced < wanted:
                written = self._written
                await asyncio.to_thread(os.fdatasync, self._descriptor)
                self._synced = written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FreeholdError(
            "batch.folder-in-use", f"Another process works on the batch in {folder}", hint="Wait for it, or stop it"
        ) from None


def _read(path: Path, descriptor: int) -> tuple[BatchHeader | None, list[JournalEvent]]:
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.ftruncate(descriptor, whole)  # the process was killed while it wrote this line
    lines = data[:whole].splitlines()
    if not lines:
        return None, []
    try:
        header = decode(BatchHeader, json.loads(lines[0]))
        events = [decode(JournalEvent, json.loads(line)) for line in lines[1:]]
    except (ValueError, WrongShape) as error:
        raise FreeholdError(
            "batch.unreadable", f"{path} is not the journal of a batch: {error}", hint="Choose another folder"
        ) from None
    count = len(header.inputs)
    if header.format != FORMAT or any(not 1 <= event.task <= count or event.attempt < 1 for event in events):
        raise FreeholdError(
            "batch.unreadable",
            f"{path} is a journal of another version, or names tasks that do not exist",
            hint="Choose another folder",
        )
    return header, events


def _check_same(header: BatchHeader, work: WorkLabel, inputs: tuple[str, ...], folder: Path) -> None:
    what = None
    if header.work != work:
        what = f"{header.work.name} as it was then"
    elif header.inputs != inputs:
        what = f"{len(header.inputs)} inputs, and not these {len(inputs)}"
    if what is not None:
        raise FreeholdError(
            "batch.changed",
            f"{folder} has the results of a batch of {what}",
            hint="Give what it was begun with to go on, or choose another folder for a new batch",
        )


def _write_line(descriptor: int, value: object) -> None:
    line = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
