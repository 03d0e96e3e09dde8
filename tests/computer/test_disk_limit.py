"""The disk limit holds for files that are hidden: deleted and open, mapped, in sockets, preallocated, or only names."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.condition import DEADLINE, until

from freehold.computer import Computer, Limits
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.contract.report import LimitEvent
from freehold.computer.contract.spec import MIB
from freehold.computer.library.process import Process
from freehold.computer.walls import deleted_files

LIMITS = Limits(disk=24 * MIB, inodes=1500)

START = """
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys, threading, time
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(descriptor, size=1 << 40, piece=1 << 18):
    # The watcher lowers the soft limit; a process may raise its own again.
    for _ in range(size // piece):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
        try:
            os.write(descriptor, bytes(piece))
        except OSError:
            pass
        time.sleep(0.005)
def deleted(name="x"):
    descriptor = os.open(f"/workspace/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.unlink(f"/workspace/{name}")
    return descriptor
"""
STAY = "\nprint('done', flush=True)\nsys.stdin.read()"

HIDDEN = {
    "deleted and open": "file = deleted()\nfill(file)",
    "without a name from the beginning": "file = os.open('/workspace', os.O_TMPFILE | os.O_RDWR)\nfill(file)",
    "mapped and closed": """
file = deleted()
os.ftruncate(file, 512 << 20)
mapping = mmap.mmap(file, 512 << 20)
os.close(file)
for offset in range(0, 512 << 20, 4096):
    mapping[offset] = 1
    if offset % (1 << 20) == 0:
        mapping.flush()
        time.sleep(0.02)
""",
    "open in a thread whose process looks dead": """
def work():
    file = deleted()
    fill(file)
    print('done', flush=True)
    time.sleep(600)
thread = threading.Thread(target=work)
thread.start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
""",
    "many small ones": "kept = []\nfor n in range(16000):\n    kept.append(deleted(str(n)))\n    fill(kept[-1], 1 << 18)",
    "in sockets": """
kept = []
for n in range(80):
    pair = socket.socketpair()
    kept.append(pair)
    for m in range(4):
        file = deleted(f"{n}-{m}")
        socket.send_fds(pair[0], [b"x"], [file])
        os.close(file)
print('done', flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:  # the watcher looks while something works
    pass
""",
}


@asynccontextmanager
async def attack(program: str, limits: Limits = LIMITS) -> AsyncIterator[tuple[Computer, Process, list[LimitEvent]]]:
    async with Computer.start(limits=limits) as computer:
        assert computer.machine is not None
        events: list[LimitEvent] = []
        computer.machine.subscribe(events.append)
        async with await computer.spawn([GUEST_PYTHON, "-I", "-c", START + program + STAY]) as process:
            yield computer, process, events


async def until_reached(events: list[LimitEvent], limit: str) -> LimitEvent:
    found = await until(lambda: [event for event in events if event.kind == "reached" and event.limit == limit])
    return found[0]


def disk_of(computer: Computer) -> int:
    assert computer.machine is not None
    return computer.machine.usage().disk or 0


@pytest.mark.parametrize("way", HIDDEN)
async def test_a_file_that_is_in_no_folder_counts(way: str) -> None:
    async with attack(HIDDEN[way]) as (computer, process, events):
        event = await until_reached(events, "disk")
        if way == "in sockets":
            assert "320 descriptors wait in sockets" in event.message
            return
        assert "by deleted files that processes keep open" in event.message
        # It goes on: at the ceiling everything is killed, and with the last process the files are gone.
        async with asyncio.timeout(DEADLINE):
            assert (await process.wait()).signal == 9
        await until(lambda: disk_of(computer) < MIB)
        assert (await computer.run("echo x > new && cat new")).stdout == b"x\n"


async def test_a_deleted_file_that_stops_at_the_limit_holds_writes_until_it_is_closed() -> None:
    program = "file = deleted()\nfill(file, 24 << 20, 1 << 20)\nprint('full', flush=True)\nsys.stdin.readline()\nos.close(file)"
    async with attack(program, Limits(disk=24 * MIB, inodes=1500)) as (computer, process, events):
        assert await process.stdout.read_exactly(5) == b"full\n"
        await until_reached(events, "disk")
        write = ["/bin/sh", "-c", "echo x > /workspace/y"]
        assert not (await computer.run(write)).ok
        await process.write(b"\n")
        assert await process.stdout.read_exactly(5) == b"done\n"

        async def can_write() -> bool:
            return (await computer.run(write)).ok

        await until(can_write)


async def test_every_name_of_a_file_counts() -> None:
    program = """
os.mkdir("/workspace/names")
open("/workspace/file", "w").close()
for number in range(200000):
    os.link("/workspace/file", f"/workspace/names/{number}")
    if number % 100 == 0:
        time.sleep(0.01)
"""
    async with attack(program) as (computer, process, events):
        await until_reached(events, "inodes")
        async with asyncio.timeout(DEADLINE):
            assert (await process.wait()).signal == 9
        count = int((await computer.run("ls -f names | wc -l")).stdout)
        assert count < 100_000


RESERVE = """
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
file = os.open("/workspace/x", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 1 << 20)
for mode in (0, 1, 0x8, 0x10, 0x11, 0x20, 0x40, 0x41, 0x43, 0x80, 0x1003):
    if libc.fallocate(file, mode, 0, 12 << 30) == 0:
        print("reserved with mode", mode)
for number in (10, 36, 40, 42, 57):
    try:
        fcntl.ioctl(file, 0x40305800 | number, struct.pack("=hhiqqiI16x", 0, 0, 0, 0, 12 << 30, 0, 0))
        print("reserved by ioctl", number)
    except OSError:
        pass
try:
    fcntl.ioctl(file, 0x401C5820, struct.pack("=IIIII8x", 0x800, 1 << 30, 0, 0, 0))
    print("an extent size was set")
except OSError:
    pass
try:
    fcntl.fcntl(file, 1024, fcntl.F_WRLCK)
    print("a lease was taken")
except OSError:
    pass
if libc.close_range(900, 1000, 2) == 0:
    print("a table of its own")
if libc.fallocate(file, 3, 0, 4096) != 0:
    print("a hole cannot be punched")
if libc.syscall(425, 1, ctypes.create_string_buffer(200)) >= 0:
    print("io_uring")
os.posix_fallocate(file, 0, 2 << 20)
print(os.fstat(file).st_blocks * 512 >= 2 << 20, os.fstat(file).st_size == 2 << 20)
"""


async def test_no_block_is_reserved_without_being_written() -> None:
    """Neither beyond the end of a file nor inside: 12 GiB would be gone before the watcher looks."""
    async with attack(RESERVE) as (_, process, events):
        assert await process.stdout.read_exactly(15) == b"True True\ndone\n"
        assert events == []


async def test_too_many_descriptors_to_look_at_count_as_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a million descriptors would hide one, and keep the watcher busy."""
    monkeypatch.setattr(deleted_files, "MAX_DESCRIPTORS", 2000)
    program = "kept = [os.open('/dev/null', os.O_RDONLY) for _ in range(3000)]\nwhile True: pass"
    async with attack(program) as (_, _, events):
        assert "more than 2000 descriptors are open" in (await until_reached(events, "disk")).message


async def test_files_of_the_host_and_files_in_memory_are_not_counted(tmp_path: Path) -> None:
    """Only files without a name, and only those on the disk of the folders."""
    program = """
named = os.open("/workspace/named", os.O_RDWR | os.O_CREAT)
os.write(named, bytes(1 << 20))
memory = os.memfd_create("x")
os.write(memory, bytes(8 << 20))
temporary = os.open("/tmp/x", os.O_RDWR | os.O_CREAT)
os.unlink("/tmp/x")
os.write(temporary, bytes(8 << 20))
library = os.open("/usr/bin/env", os.O_RDONLY)
"""
    async with attack(program, Limits()) as (computer, process, _):
        assert await process.stdout.read_exactly(5) == b"done\n"
        await until(lambda: disk_of(computer) >= MIB)
        assert disk_of(computer) < 2 * MIB
