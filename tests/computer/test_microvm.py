"""What only a virtual machine does: a kernel of its own, owners of files, randomness, and an end with its keeper."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.computer.test_backend_conformance import make_spec
from tests.computer.virtual_machines import VM_SYSTEM, micro_vm
from tests.support.condition import wait_until
from tests.support.processes import read_command

from freehold.computer import Computer, launch
from freehold.computer.contract.backend import Backend
from freehold.computer.escapes import BOMBS, ESCAPES, try_bomb, try_escape
from freehold.computer.escapes.bait import placed_bait
from freehold.computer.microvm.initramfs import CpioArchive
from freehold.computer.microvm.kernel import find_kernel
from freehold.computer.microvm.machine import VmMachine
from freehold.computer.microvm.vm import find_missing_wall_inside
from freehold.errors import FreeholdError


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with micro_vm() as found:
        yield found


@pytest.fixture
async def computer(backend: Backend) -> AsyncIterator[Computer]:
    async with Computer.start(backend=backend) as started:
        yield started


async def test_every_escape_attempt_is_refused_in_a_virtual_machine(computer: Computer, backend: Backend) -> None:
    """Without the search of the whole system for setuid programs, which takes an emulated machine minutes: no mount has them."""
    mounts = (await computer.run("cat /proc/self/mounts")).text.splitlines()
    assert [line for line in mounts if "nosuid" not in line] == []
    with placed_bait() as bait:
        tried = [escape for escape in ESCAPES if escape.name != "setuid-programs"]
        verdicts = [await try_escape(escape, bait, computer) for escape in tried]
        bombs = [bomb for bomb in BOMBS if bomb.name in ("fork", "disk")]
        verdicts += [await try_bomb(bomb, bait, computer, backend) for bomb in bombs]
    assert {verdict.name: verdict.seen for verdict in verdicts if verdict.outcome != "refused"} == {}


async def test_the_kernel_is_its_own_and_two_machines_have_other_randomness(
    computer: Computer, backend: Backend
) -> None:
    draw = "uname -r; head -c 16 /dev/urandom | od -An -tx1"
    async with Computer.start(backend=backend) as other:
        one, two = (await computer.run(draw)).text.split("\n"), (await other.run(draw)).text.split("\n")
    assert one[0] == two[0] == find_kernel(VM_SYSTEM).release != os.uname().release
    assert one[1] != two[1]
    assert computer.machine is not None
    assert "a kernel of its own" in computer.machine.isolation.walls


async def test_a_file_made_inside_has_the_owner_of_the_computer_on_the_host(backend: Backend, tmp_path: Path) -> None:
    """Also one that a program inside wants to give to somebody else, or to make special."""
    spec = make_spec(tmp_path, "one")
    async with Computer.start(spec.workspace, spec.home, backend=backend) as computer:
        await computer.run("touch made; cp /usr/bin/id id; chmod 6755 id; chown 0:0 id; mknod device c 1 3")
        await computer.files.write("written", b"content")
    assert {path.stat().st_uid for path in spec.workspace.iterdir()} == {64242}
    assert not (spec.workspace / "device").exists()
    assert (spec.workspace / "written").read_bytes() == b"content"


STARTER = """
import asyncio, sys
from pathlib import Path
from freehold.computer import launch
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.microvm.backend import MicroVm

async def main():
    folder = Path(sys.argv[1])
    spec = ComputerSpec(folder / "one/workspace", folder / "one/home")
    machine = await launch(spec, folder / "link", MicroVm(system=Path(sys.argv[2])))
    vm = machine._started.result()
    print(machine.pid, *(one.process.pid for one in vm.shares), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_virtual_machine_ends_with_the_process_that_started_it(backend: Backend, tmp_path: Path) -> None:
    make_spec(tmp_path, "one")
    command = [sys.executable, "-c", STARTER, str(tmp_path), str(VM_SYSTEM)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pids = [int(word) for word in starter.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(read_command, pids))
        os.kill(starter.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(read_command, pids)))


async def test_the_death_of_the_program_that_shares_the_folders_ends_the_machine(
    backend: Backend, tmp_path: Path
) -> None:
    """Its folders would hang for ever: the keeper starts the computer again."""
    machine = await launch(make_spec(tmp_path, "one"), tmp_path / "link", backend)
    try:
        assert isinstance(machine, VmMachine)
        os.kill(machine._started.result().shares[0].process.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            assert await machine.wait() != 0
    finally:
        await machine.stop(0)


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
