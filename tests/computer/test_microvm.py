"""What only a virtual machine does: a kernel of its own, owners of files, randomness, and an end with its keeper."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.computer.test_backend_conformance import make_spec, running
from tests.computer.virtual_machines import VM_SYSTEM, micro_vm, skip_unless_it_can_save
from tests.soak.vm_sleep import sleep_and_wake
from tests.support.condition import until, wait_until
from tests.support.processes import read_command

from freehold.computer import Computer
from freehold.computer.escapes import BOMBS, ESCAPES, try_bomb, try_escapes
from freehold.computer.escapes.bait import placed_bait
from freehold.computer.escapes.bombs import SMALL as BOMB_LIMITS
from freehold.computer.microvm.backend import MicroVm
from freehold.computer.microvm.initramfs import CpioArchive
from freehold.computer.microvm.kernel import find_kernel
from freehold.computer.microvm.machine import VmMachine
from freehold.computer.microvm.saved_state import COPY_STEP, SavedState, copy_data, find_data
from freehold.computer.microvm.template import SETTLED_AFTER, Template
from freehold.computer.microvm.vm import Blueprint, find_missing_wall_inside
from freehold.errors import FreeholdError


@pytest.fixture(scope="module")
def backend() -> Iterator[MicroVm]:
    with micro_vm() as found:
        yield found


@pytest.fixture
async def machine_and_computer(backend: MicroVm, tmp_path: Path) -> AsyncIterator[tuple[VmMachine, Computer]]:
    async with running(backend, make_spec(tmp_path, "one"), tmp_path / "link") as (machine, computer):
        assert isinstance(machine, VmMachine)
        yield machine, computer


async def test_every_escape_attempt_is_refused_in_a_virtual_machine(backend: MicroVm, tmp_path: Path) -> None:
    spec = make_spec(tmp_path, "one")
    async with Computer.start(spec.workspace, spec.home, limits=BOMB_LIMITS, backend=backend) as computer:
        with placed_bait() as bait:
            verdicts = [verdict async for verdict in try_escapes(ESCAPES, bait, computer)]
            (bomb,) = (bomb for bomb in BOMBS if bomb.name == "disk")
            verdicts.append(await try_bomb(bomb, bait, computer, backend))
    assert {verdict.name: verdict.seen for verdict in verdicts if verdict.outcome != "refused"} == {}


DRAW = """
import json, os, random, time
print(json.dumps({"kernel": os.uname().release, "time": time.time(), "bytes": os.urandom(16).hex(),
    "boot": open("/proc/sys/kernel/random/boot_id").read(), "number": random.random(), "tmp": os.listdir("/tmp")}))
"""


async def test_copies_of_a_template_have_randomness_of_their_own_and_the_right_time(
    backend: MicroVm, tmp_path: Path
) -> None:
    """A copy that drew the numbers of another would make the same keys. Nothing of the template is left in it."""
    skip_unless_it_can_save()
    drawn = []
    for name in ("one", "two"):
        began = time.time()
        async with running(backend, make_spec(tmp_path, name), tmp_path / f"link-{name}") as (machine, computer):
            found = json.loads((await computer.run(["/usr/bin/python3", "-c", DRAW])).stdout)
            drawn.append(found)
            assert began <= found["time"] <= time.time()
            assert found["tmp"] == []
            assert await computer.processes() == []
            assert "a kernel of its own" in machine.isolation.walls
    one, two = drawn
    assert one["kernel"] == two["kernel"] == find_kernel(VM_SYSTEM).release != os.uname().release
    assert not [name for name in ("bytes", "boot", "number") if one[name] == two[name]]


async def test_a_template_is_used_only_if_its_bytes_and_the_system_are_as_they_were(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("freehold.computer.microvm.template.cache_folder", lambda: tmp_path)
    template = Template("key")
    assert not template.is_usable()
    template.folder.mkdir()
    with contextlib.closing(SavedState.create_folder(template.folder)) as saved:
        saved.memory.truncate(1 << 20)
        os.pwrite(saved.memory.fileno(), b"memory", 8192)
        os.pwrite(saved.devices.fileno(), b"devices", 0)
        (template.folder / "digest").write_text(saved.digest())
    known = tmp_path / "known"
    known.write_text("a file of the system")
    found = known.lstat()
    described = [found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    (template.folder / "system").write_text(json.dumps({str(known): [found.st_dev + 1, *described[1:]]}))
    assert not template.is_usable()
    (template.folder / "system").write_text(json.dumps({str(known): described}))
    assert template.is_usable()
    with template.opened() as opened:
        assert opened is not None
        assert opened[1].result()
    known.write_text("another text")
    assert not template.is_usable()
    with (template.folder / "memory").open("r+b") as memory:
        memory.seek(8192)
        memory.write(b"M")
    with template.opened() as opened:
        assert opened is not None
        assert not opened[1].result()


def test_a_template_is_read_again_only_when_it_may_have_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("freehold.computer.microvm.template.cache_folder", lambda: tmp_path)
    template = Template("key")
    template.folder.mkdir()
    with contextlib.closing(SavedState.create_folder(template.folder)) as saved:
        os.pwrite(saved.memory.fileno(), b"memory", 0)
        (template.folder / "digest").write_text(saved.digest())
    read: list[SavedState] = []
    digest = SavedState.digest

    def count(saved: SavedState) -> str:
        read.append(saved)
        return digest(saved)

    monkeypatch.setattr(SavedState, "digest", count)

    def is_right() -> bool:
        with template.opened() as opened:
            assert opened is not None
            return opened[1].result()

    wait_until(lambda: time.time() - (template.folder / "memory").stat().st_ctime > SETTLED_AFTER)
    assert is_right()
    assert len(read) == 1
    assert is_right()
    assert len(read) == 1
    times = (template.folder / "memory").stat()
    (template.folder / "memory").write_bytes(b"Memory")
    os.utime(template.folder / "memory", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not is_right()
    (template.folder / "memory").write_bytes(b"memory")
    assert is_right()
    assert len(read) == 3


def test_memory_is_saved_without_its_empty_pages(tmp_path: Path) -> None:
    filled = {0: b"first", 4096 * 5: b"in the middle", COPY_STEP: b"after a step", COPY_STEP + 4096 * 7: b"last"}
    with (tmp_path / "memory").open("w+b") as memory, (tmp_path / "saved").open("w+b") as saved:
        memory.write(bytes(COPY_STEP + 4096 * 9 + 100))
        for place, text in filled.items():
            os.pwrite(memory.fileno(), text, place)
        memory.flush()
        copy_data(memory.fileno(), saved.fileno())
        assert (tmp_path / "saved").read_bytes() == (tmp_path / "memory").read_bytes()
        assert sum(end - start for start, end in find_data(saved.fileno())) <= len(filled) * 65536


def test_memory_that_cannot_be_read_as_a_whole_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing would be zeros in the machine that continues."""
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, place: read(file, size, place)[:-4096])
    with (tmp_path / "memory").open("w+b") as memory, (tmp_path / "saved").open("w+b") as saved:
        memory.write(b"x" * 4096 * 3)
        memory.flush()
        with pytest.raises(OSError, match="Input/output error"):
            copy_data(memory.fileno(), saved.fileno())


async def test_variables_of_an_owner_are_in_no_template(
    backend: MicroVm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A template stays on disk, and its memory would hold them."""
    monkeypatch.setattr("freehold.computer.microvm.template.cache_folder", lambda: tmp_path)
    spec = replace(make_spec(tmp_path, "one"), environment={"SECRET": "of-the-owner"})
    async with running(backend, spec, tmp_path / "link") as (_, computer):
        assert (await computer.run("echo $SECRET")).text == "of-the-owner\n"
    assert not (tmp_path / "templates").exists()


async def test_a_machine_that_stalls_in_its_boot_is_booted_again(
    backend: MicroVm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("freehold.computer.microvm.vm_start.STALL_TIMEOUT", 0.1)
    spec = replace(make_spec(tmp_path, "one"), environment={"SECRET": "no template"})
    async with running(backend, spec, tmp_path / "link") as (_, computer):
        assert (await computer.run("echo booted")).text == "booted\n"


SERVER = "cd /workspace && exec python3 -m http.server --bind 127.0.0.1 8000"
WRITER = """
import os, time
file = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
number = 0
while True:
    os.write(file, f"{number}\\n".encode())
    print(number, flush=True)
    number += 1
    time.sleep(0.01)
"""


async def ask_server(computer: Computer) -> str:
    script = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8000/page').read().decode())"
    return (await computer.run(["/usr/bin/python3", "-c", script])).text


async def test_a_machine_that_sleeps_on_disk_uses_no_memory_and_its_servers_go_on(
    machine_and_computer: tuple[VmMachine, Computer], tmp_path: Path
) -> None:
    """QEMU has ended meanwhile. A file that the host changes is seen, one that is open is written on."""
    skip_unless_it_can_save()
    machine, computer = machine_and_computer
    page = tmp_path / "one/workspace/page"
    await computer.files.write("page", b"before")
    async with (
        await computer.spawn(SERVER),
        await computer.spawn(["/usr/bin/python3", "-c", WRITER]) as writer,
    ):

        async def answers() -> bool:
            return await ask_server(computer) == "before\n"

        await until(answers)
        lines = writer.stdout.lines()
        assert int(await anext(lines)) == 0
        assert machine._vm is not None
        pids = machine._vm.pids
        report = await machine.sleep()
        assert (report.how, report.memory_after) == ("written to disk", 0)
        assert machine.pid is None
        assert not any(map(read_command, pids))
        page.write_text("meanwhile")
        size = (tmp_path / "one/workspace/log").stat().st_size
        asked = asyncio.ensure_future(ask_server(computer))
        await machine.wake()
        assert await asked == "meanwhile\n"
        seen = [int(await anext(lines)) for _ in range(5)]
        assert seen == list(range(seen[0], seen[0] + 5))
        assert (tmp_path / "one/workspace/log").stat().st_size > size
        assert writer.exit is None


async def test_a_server_and_a_terminal_go_on_after_each_sleep_on_disk(
    machine_and_computer: tuple[VmMachine, Computer],
) -> None:
    """200 times: python -m tests.soak.vm_sleep"""
    skip_unless_it_can_save()
    await sleep_and_wake(*machine_and_computer, times=3)


HOLDER = """
import os, sys, tempfile
file = open("held", "w+")
file.write("kept")
file.flush()
if sys.argv[1] == "nameless":
    os.unlink("held")
print("ready", flush=True)
sys.stdin.readline()
file.seek(0)
try:
    print(file.read(), flush=True)
except OSError as error:
    print("refused", flush=True)
"""


async def test_a_machine_that_holds_a_deleted_file_sleeps_in_memory(
    machine_and_computer: tuple[VmMachine, Computer],
) -> None:
    """Nobody could find the file again: the program keeps it."""
    machine, computer = machine_and_computer
    async with await computer.spawn(["/usr/bin/python3", "-c", HOLDER, "nameless"]) as holder:
        assert await holder.stdout.read() == b"ready\n"
        assert (await machine.sleep()).how == "frozen"
        await machine.wake()
        await holder.write(b"\n")
        assert await holder.stdout.read() == b"kept\n"


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_machine_that_cannot_be_written_to_disk_sleeps_in_memory(
    machine_and_computer: tuple[VmMachine, Computer],
) -> None:
    """Whatever fails, before it stands still or after: it goes on, and sleeps on disk as soon as that works again."""
    skip_unless_it_can_save()
    machine, computer = machine_and_computer
    async with asyncio.timeout(300):
        for place in ("SavedState.create_unnamed", "_free_space"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(f"freehold.computer.microvm.saved_state.{place}", fail)
                assert (await machine.sleep()).how == "frozen"
                await machine.wake()
                assert (await computer.run("echo awake")).stdout == b"awake\n"
        assert (await machine.sleep()).how == "written to disk"
        await machine.wake()
        assert (await computer.run("echo awake")).stdout == b"awake\n"


async def test_a_machine_that_cannot_be_loaded_from_disk_has_ended(
    machine_and_computer: tuple[VmMachine, Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a reason that nobody has thought of. Whoever waits for it hears of it, and starts it again."""
    skip_unless_it_can_save()
    machine, _ = machine_and_computer
    async with asyncio.timeout(300):
        assert (await machine.sleep()).how == "written to disk"
        monkeypatch.setattr(Blueprint, "load", fail)
        await machine.wake()
        assert await machine.wait() != 0
        assert "No space left on device" in machine.last_words()
        await machine.stop()


async def test_a_file_that_was_replaced_while_the_machine_slept_is_not_mistaken_for_the_old_one(
    machine_and_computer: tuple[VmMachine, Computer], tmp_path: Path
) -> None:
    """As an undo does it. The program that had it open gets an error; everything else goes on."""
    skip_unless_it_can_save()
    machine, computer = machine_and_computer
    async with await computer.spawn(["/usr/bin/python3", "-c", HOLDER, "named"]) as holder:
        assert await holder.stdout.read() == b"ready\n"
        assert (await machine.sleep()).how == "written to disk"
        (tmp_path / "one/workspace/other").write_text("another file")
        (tmp_path / "one/workspace/other").replace(tmp_path / "one/workspace/held")
        await machine.wake()
        await holder.write(b"\n")
        assert await holder.stdout.read() == b"refused\n"

    async def sees_the_new_one() -> bool:
        return (await computer.run("cat held")).text == "another file"

    await until(sees_the_new_one)


async def test_a_file_made_inside_has_the_owner_of_the_computer_on_the_host(
    machine_and_computer: tuple[VmMachine, Computer], tmp_path: Path
) -> None:
    """Also one that a program inside wants to give to somebody else, or to make special."""
    _, computer = machine_and_computer
    workspace = tmp_path / "one/workspace"
    await computer.run("touch made; cp /usr/bin/id id; chmod 6755 id; chown 0:0 id; mknod device c 1 3")
    await computer.files.write("written", b"content")
    assert {path.stat().st_uid for path in workspace.iterdir()} == {64242}
    assert not (workspace / "device").exists()
    assert (workspace / "written").read_bytes() == b"content"


STARTER = """
import asyncio, sys
from pathlib import Path
from tests.computer.test_backend_conformance import SMALL
from freehold.computer import launch
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.microvm.backend import MicroVm

async def main():
    folder = Path(sys.argv[1])
    spec = ComputerSpec(folder / "one/workspace", folder / "one/home", limits=SMALL)
    machine = await launch(spec, folder / "link", MicroVm(system=Path(sys.argv[2])))
    print(*machine._vm.pids, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_virtual_machine_ends_with_the_process_that_started_it(backend: MicroVm, tmp_path: Path) -> None:
    make_spec(tmp_path, "one")
    command = [sys.executable, "-c", STARTER, str(tmp_path), str(VM_SYSTEM)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pids = [int(word) for word in starter.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(read_command, pids))
        os.kill(starter.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(read_command, pids)))


@pytest.mark.parametrize("victim", ["QEMU", "virtiofsd"])
async def test_a_machine_that_is_killed_in_the_middle_of_work_is_lost_and_no_file_with_it(
    backend: MicroVm, tmp_path: Path, victim: str
) -> None:
    """Everything that a program was told to be written is there, also when the machine starts again."""
    spec = make_spec(tmp_path, "one")
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        assert isinstance(machine, VmMachine)
        assert machine._vm is not None
        pid = machine._vm.pids[0 if victim == "QEMU" else 1]
        process = await computer.spawn(["/usr/bin/python3", "-c", WRITER])
        lines = process.stdout.lines()
        written = [int(await anext(lines)) for _ in range(20)][-1]
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            assert await machine.wait() != 0
            with pytest.raises(FreeholdError):
                await process.wait()
    text = (spec.workspace / "log").read_text()
    assert text.startswith("".join(f"{number}\n" for number in range(written + 1)))
    async with running(backend, spec, tmp_path / "link") as (_, computer):
        assert (await computer.files.read("log")).decode() == text


def test_a_machine_without_a_kernel_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    with pytest.raises(FreeholdError) as caught:
        find_kernel(tmp_path)
    assert caught.value.code == "computer.no-isolation"
    assert "apt install linux-image" in caught.value.hint


def test_modules_are_loaded_after_those_that_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "lib/modules/6.1.0/kernel"
    folder.mkdir(parents=True)
    (tmp_path / "boot").mkdir()
    for release in ("6.1.0", "6.0.9"):
        (tmp_path / "boot" / f"vmlinuz-{release}").write_bytes(b"")
    needs = {"virtio": "", "virtio_ring": "virtio", "virtio-pci": "virtio,virtio_ring", "erofs": "", "other": ""}
    for name, words in needs.items():
        (folder / f"{name}.ko").write_bytes(b"\x7fELF\0depends=" + words.encode() + b"\0")
    found = find_kernel(tmp_path)
    assert found.release == "6.1.0"
    assert [path.stem for path in found.modules] == ["virtio", "virtio_ring", "virtio-pci", "erofs"]


@pytest.mark.skipif(not Path("/bin/busybox").exists(), reason="busybox is not installed: the archive was not unpacked")
def test_the_first_files_can_be_unpacked_by_another_program(tmp_path: Path) -> None:
    archive = CpioArchive()
    archive.add("folder", mode=0o40755)
    archive.add("folder/file", b"content", 0o100644)
    listed = subprocess.run(
        ["/bin/busybox", "cpio", "-idm"], input=archive.close(), cwd=tmp_path, capture_output=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
    assert (tmp_path / "folder/file").read_bytes() == b"content"


STATUS = "Uid:\t1000\t1000\t1000\t1000\nNoNewPrivs:\t1\nSeccomp:\t2\n" + "".join(
    f"{name}:\t{'0' * 16}\n" for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")
)
TOLD: dict[str, object] = {"status": STATUS, "shared": [], "root": "ro,nosuid"}


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({}, ""),
        ({"status": STATUS.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0")}, "NoNewPrivs is 0"),
        ({"status": STATUS.replace("CapBnd:\t0", "CapBnd:\t1")}, "CapBnd"),
        ({"status": STATUS.replace("1000", "0")}, "uid is"),
        ({"shared": ["pid"]}, "a namespace"),
        ({"root": "rw"}, "its root is writable"),
        ({"status": None}, "NoNewPrivs is None"),
        ({"root": None}, "its root is writable"),
    ],
)
def test_a_machine_that_lacks_a_wall_is_not_used(change: dict[str, object], missing: str) -> None:
    found = find_missing_wall_inside({**TOLD, **change})
    assert found.startswith(missing) if missing else found == ""
