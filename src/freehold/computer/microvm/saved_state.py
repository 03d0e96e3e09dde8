"""A machine on disk: its memory and the state of its devices, in two files.

QEMU writes the devices only. The memory is a file that this process holds too: it is copied here, without its holes, so
that a machine that may use 4 GiB and uses 200 MiB costs 200 MiB and the time for them.
"""

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from blake3 import blake3

from freehold.computer.microvm.qmp import QmpPort
from freehold.errors import FreeholdError

SAVE_TIMEOUT = 60.0
COPY_STEP = 8 * 1024 * 1024
PAGE = 4096
_EMPTY_PAGE = bytes(PAGE)
SPARE_DISK = 256 * 1024 * 1024
"""Bytes of disk that a sleeping machine leaves to everybody else."""
# Copies what is not a hole, in a program of its own. The size of the target is right already.
_COPY = """
import os, sys
source, target, place = int(sys.argv[1]), int(sys.argv[2]), 0
while True:
    try:
        start = os.lseek(source, place, os.SEEK_DATA)
    except OSError:
        break
    place = os.lseek(source, start, os.SEEK_HOLE)
    os.lseek(target, start, os.SEEK_SET)
    while start < place:
        sent = os.sendfile(target, source, start, place - start)
        if sent == 0:
            sys.exit(1)
        start += sent
"""
_SHARED_MEMORY_STAYS = [{"capability": "x-ignore-shared", "state": True}]


@dataclass(frozen=True)
class SavedState:
    """`memory` has holes where the machine has nothing but zeros."""

    memory: IO[bytes]
    devices: IO[bytes]

    @classmethod
    def create_unnamed(cls, folder: Path) -> "SavedState":
        """On disk, without a name: it is gone with this process, whatever happens to it. Raises OSError."""
        memory = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it
        try:
            return cls(memory, tempfile.TemporaryFile(dir=folder))
        except OSError:
            memory.close()
            raise

    @classmethod
    def open_folder(cls, folder: Path) -> "SavedState":
        """Raises OSError."""
        memory = (folder / "memory").open("rb")
        try:
            return cls(memory, (folder / "devices").open("rb"))
        except OSError:
            memory.close()
            raise

    @classmethod
    def create_folder(cls, folder: Path) -> "SavedState":
        return cls((folder / "memory").open("w+b"), (folder / "devices").open("w+b"))

    def close(self) -> None:
        self.memory.close()
        self.devices.close()

    def digest(self) -> str:
        """Over every byte that is not in a hole, with its place."""
        found = blake3()
        for file in (self.memory, self.devices):
            descriptor = file.fileno()
            found.update(f"{os.fstat(descriptor).st_size};".encode())
            for start, end in find_data(descriptor):
                for place in range(start, end, COPY_STEP):
                    data = os.pread(descriptor, min(COPY_STEP, end - place), place)
                    found.update(f"{place}:{len(data)};".encode())
                    found.update(data)
        return found.hexdigest()


def find_data(descriptor: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are not holes."""
    place = 0
    while True:
        try:
            start = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        place = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, place


def save_machine(qmp: QmpPort, memory: int, saved: SavedState) -> None:
    """Stop the machine and write it. If this raises, `continue_machine` lets it go on."""
    qmp.ask("stop")
    needed = sum(end - start for start, end in find_data(memory))
    if needed + SPARE_DISK > _free_space(saved.memory.fileno()):
        raise FreeholdError("computer.cannot-sleep", f"The disk has no room for {needed >> 20} MiB of memory")
    qmp.ask("migrate-set-capabilities", capabilities=_SHARED_MEMORY_STAYS)
    with _reopened(saved.devices, os.O_WRONLY) as target:
        qmp.ask("add-fd", [target], fdset_id=1)
    qmp.ask("migrate", uri="file:/dev/fdset/1")
    qmp.await_status("query-migrate", "completed", ("setup", "active", "device", "wait-unplug"), SAVE_TIMEOUT)
    try:
        copy_data(memory, saved.memory.fileno())
    except OSError as error:
        raise FreeholdError("computer.cannot-sleep", f"The memory cannot be written: {error.strerror}") from error


def continue_machine(qmp: QmpPort) -> None:
    """After a save that failed."""
    qmp.ask("cont")


def copy_data(source: int, target: int) -> None:
    """Copy what is not zero. The target gets the same size, and holes for the rest. Raises OSError."""
    os.ftruncate(target, os.fstat(source).st_size)
    for start, end in find_data(source):
        for place in range(start, end, COPY_STEP):
            wanted = min(COPY_STEP, end - place)
            data = os.pread(source, wanted, place)
            if len(data) < wanted:  # the rest would be zeros in the copy
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            for first, last in _find_filled(data):
                _write_all(target, data[first:last], place + first)


def _find_filled(data: bytes) -> Iterator[tuple[int, int]]:
    """The parts of `data` that are made of pages with something in them."""
    first: int | None = None
    for place in range(0, len(data), PAGE):
        page = data[place : place + PAGE]
        if page == _EMPTY_PAGE[: len(page)]:
            if first is not None:
                yield first, place
            first = None
        elif first is None:
            first = place
    if first is not None:
        yield first, len(data)


def _write_all(target: int, data: bytes, place: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(target, left, place)
        place += written
        left = left[written:]


def start_copy_to_memory(saved: SavedState, memory: int, entering: list[str]) -> subprocess.Popen[bytes]:
    """Copy in a process of the machine's control group: who writes memory first is charged for it."""
    source = saved.memory.fileno()
    return subprocess.Popen(
        [*entering, sys.executable, "-I", "-S", "-c", _COPY, str(source), str(memory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[source, memory],
        cwd="/",
        env={},
    )


def load_devices(qmp: QmpPort, saved: SavedState) -> None:
    """Into a QEMU that waits for it. The machine stands still afterwards."""
    qmp.ask("migrate-set-capabilities", capabilities=_SHARED_MEMORY_STAYS)
    with _reopened(saved.devices, os.O_RDONLY) as source:
        qmp.ask("add-fd", [source], fdset_id=1)
    qmp.ask("migrate-incoming", uri="file:/dev/fdset/1")
    qmp.await_status("query-migrate", "completed", ("setup", "active", "device", "none"), SAVE_TIMEOUT)


def _free_space(descriptor: int) -> int:
    found = os.fstatvfs(descriptor)
    return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def _reopened(file: IO[bytes], flags: int) -> Iterator[int]:
    """A descriptor of its own with exactly this mode, at the beginning of the file."""
    descriptor = os.open(f"/proc/self/fd/{file.fileno()}", flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
