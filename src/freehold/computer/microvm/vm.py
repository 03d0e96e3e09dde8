"""Boots a virtual machine, or loads a saved one, with the guest in it. Blocking: runs in the thread of the computer."""

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_UID
from freehold.computer.contract.report import Isolation, LimitMechanism
from freehold.computer.contract.spec import MIB, ComputerSpec, Limits
from freehold.computer.microvm.control import ControlPort
from freehold.computer.microvm.hardware import (
    MEMORY_OF_THE_KERNEL,
    Hardware,
    VmSockets,
    create_memory,
    machine_size,
    start_qemu,
)
from freehold.computer.microvm.initramfs import copy_kernel, find_busybox, write_initramfs
from freehold.computer.microvm.kernel import find_kernel
from freehold.computer.microvm.layout import REMOTE, SHARE, SYSTEM, describe_share, link_system, plan_inside
from freehold.computer.microvm.qmp import QmpPort
from freehold.computer.microvm.requirements import find_vm_tools
from freehold.computer.microvm.saved_state import (
    SavedState,
    continue_machine,
    load_devices,
    save_machine,
    start_copy_to_memory,
)
from freehold.computer.microvm.shared_folders import SharedFolders, ShareMode, has_file_handles, share_folder
from freehold.computer.walls.bind_stage import stage_binds
from freehold.computer.walls.cgroups import Cgroup, find_parents, make_cgroup, remove_stale_cgroups
from freehold.computer.walls.landlock import MIN_LANDLOCK_VERSION, SESSIONS_APART
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError

MAX_CONSOLE = 64 * 1024
START_TIMEOUT = 60.0
COPY_TIMEOUT = 60.0
FORGET_TIMEOUT = 0.3
MEMORY_OF_QEMU = 512 * MIB
REMOTE_AT_ONCE = 16
"""Requests to remote mounts that are carried out at the same time."""
NONE = "0" * 16
EXPECTED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": NONE, "CapPrm": NONE, "CapBnd": NONE, "CapAmb": NONE}
NAMESPACES = ("pid", "mnt", "ipc", "uts", "cgroup")
IN_THE_MACHINE: dict[str, LimitMechanism] = {
    "memory": "virtual machine",
    "processes": "virtual machine",
    "cpus": "virtual machine",
    "open_files": "rlimit",
    "file_size": "rlimit",
    "disk": "watch",
    "inodes": "watch",
    "output": "guest",
    "cpu_time": "guest",
    "wall_time": "guest",
    "tmp": "tmpfs",
}


class DidNotBoot(Exception):
    """Says what the console showed last."""


@dataclass(frozen=True)
class VmOrder:
    """What to start. `uid` owns the folders on the host.

    `system` is the folder of the system whose programs are used, `kernel` the folder with boot/ and lib/modules/.
    """

    spec: ComputerSpec
    guest: Path
    uid: int
    system: Path
    kernel: Path
    cancelled: threading.Event


def has_remote_mounts(spec: ComputerSpec) -> bool:
    """Such a machine boots for each start and sleeps in memory: what is mounted meanwhile is in no saved machine."""
    return any(mount.follows for mount in spec.mounts)


@dataclass(frozen=True)
class Vm:
    """A running machine and the handles to end it. `memory` is the descriptor of its memory."""

    qemu: subprocess.Popen[bytes]
    shares: tuple[SharedFolders, ...]
    cgroup: Cgroup | None
    qmp: QmpPort
    control: ControlPort
    streams: socket.socket
    memory: int
    walls: tuple[str, ...] = ()

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.qemu.pid, *(share.process.pid for share in self.shares))

    def save(self, saved: SavedState) -> None:
        """Write it to disk. It stands still afterwards, and is of no more use. If this raises, it goes on."""
        try:
            self.control.ask("pause")
            self._await_names()
            try:
                save_machine(self.qmp, self.memory, saved)
            except BaseException:
                continue_machine(self.qmp)
                raise
        except BaseException:
            self.control.wake()
            raise

    def _await_names(self) -> None:
        """Raises if a program inside holds a deleted file. The machine forgets others in a moment."""
        deadline = time.monotonic() + FORGET_TIMEOUT
        while any(share.holds_nameless_files() for share in self.shares):
            if time.monotonic() > deadline:
                raise FreeholdError("computer.cannot-sleep", "A program inside holds a file that was deleted")
            time.sleep(0.01)

    def kill(self) -> None:
        self.qemu.kill()
        if self.cgroup is not None:
            self.cgroup.kill()

    def remove(self) -> None:
        """Kill it and return when no process and no cgroup is left. `streams` is left to its user."""
        self.kill()
        for share in self.shares:
            share.end()
        _end(self.qemu)
        self.control.close()
        self.qmp.close()
        os.close(self.memory)
        _remove_cgroup(self.cgroup)


class Blueprint:
    """All that is needed to boot a machine, and to load it again after a sleep. Use it in one thread."""

    def __init__(self, order: VmOrder, hardware: Hardware, release: str) -> None:
        self.order = order
        self.hardware = hardware
        self.release = release
        self._verifies = False

    @property
    def version(self) -> str:
        return self.hardware.tools.version

    def describe_isolation(self, walls: tuple[str, ...]) -> Isolation:
        how = "emulation" if self.hardware.is_emulated else "hardware support"
        runs_as = f"uid {self.order.uid} in a virtual machine ({how}, kernel {self.release})"
        return Isolation("microvm", self.version, runs_as, walls, IN_THE_MACHINE)

    def using(self, accelerator: str) -> "Blueprint":
        """The same with "kvm" or "tcg"."""
        return Blueprint(self.order, replace(self.hardware, accelerator=accelerator), self.release)

    def emulate(self) -> None:
        """From now on without hardware support."""
        self.hardware = replace(self.hardware, accelerator="tcg")

    def stage(self) -> None:
        """Collect the folders that the machine sees, once. The mount namespace of the thread changes permanently."""
        binds = describe_share(self.order.spec, self.order.guest)
        self._verifies = all(has_file_handles(bind.source) for bind in binds if not bind.name.startswith(REMOTE.name))
        stage_binds(binds)
        if self.order.spec.image is None:
            link_system()

    def boot(self, timeout: float, *, is_template: bool = False) -> Vm:
        """Raises DidNotBoot if pid 1 of the machine does not report in time. A template gets other folders later."""
        cancelled = self.order.cancelled
        with self._assembled(ShareMode(changes=True, verifies=self._verifies and not is_template)) as vm:
            if not vm.control.wait_hello(timeout, lambda: vm.qemu.poll() is None and not cancelled.is_set()):
                raise DidNotBoot(read_console(vm.qemu))
            vm.qmp.open()
            vm.control.wake()
            max_files = min(share.max_files for share in vm.shares) // 3
            vm.control.ask("start", START_TIMEOUT, plan=self.plan(max_files))
            return replace(vm, walls=_await_walls(vm.control))

    def load(self, saved: SavedState, is_right: Callable[[], bool], *, forgives: bool) -> Vm:
        """A machine that goes on where `saved` was saved. Nothing runs in it before it has the time and randomness.

        `is_right` says at the last moment whether it may. With `forgives` it may have lost files meanwhile. Its walls
        are those that stood when it was saved: they are in the memory that is loaded.
        """
        mode = ShareMode(changes=True, verifies=self._verifies, forgives=forgives)
        with self._assembled(mode, saved) as vm:
            try:
                vm.qmp.open()
                load_devices(vm.qmp, saved)
            except FreeholdError as error:
                why = f"{error.message}; {read_console(vm.qemu)}"
                raise FreeholdError("computer.no-isolation", f"The saved machine cannot be loaded: {why}") from None
            if not is_right():
                raise FreeholdError("computer.no-isolation", "The saved machine is not what was saved")
            vm.qmp.ask("cont")
            vm.control.wake()
            return vm

    def plan(self, max_files: int) -> dict[str, object]:
        return plan_inside(self.order.spec, list(compile_filters()), max_files)

    @contextlib.contextmanager
    def _assembled(self, mode: ShareMode, saved: SavedState | None = None) -> Iterator[Vm]:
        """QEMU and the programs that share folders. They are removed if an exception leaves the block."""
        order, tools = self.order, self.hardware.tools
        parents = find_parents()
        remove_stale_cgroups(parents)
        cgroup = make_cgroup(_limits_of_host(order.spec.limits), parents)
        entering = [] if cgroup is None else cgroup.entering_command()
        with contextlib.ExitStack() as undo:
            undo.callback(_remove_cgroup, cgroup)
            memory = create_memory(self.hardware.memory)
            undo.callback(os.close, memory)
            copying = None if saved is None else start_copy_to_memory(saved, memory, entering)
            if copying is not None:
                undo.callback(_end, copying)
            shares: dict[str, SharedFolders] = {}
            for name, folder, how in self._list_shares(mode):
                shares[name] = share_folder(tools, folder, entering, how)
                undo.callback(shares[name].end)
            sockets = VmSockets.create()
            undo.callback(sockets.close)
            connections = {name: share.connection for name, share in shares.items()}
            waits = saved is not None
            qemu = start_qemu(self.hardware, order.uid + 2, entering, sockets, connections, memory, waits=waits)
            undo.callback(_end, qemu)
            sockets.close_inside()
            for share in shares.values():
                share.connection.close()
                share.admit(order.uid)
            if copying is not None and not _has_copied(copying):
                raise FreeholdError("computer.no-isolation", "The memory of the machine cannot be read from the disk")
            port, control = QmpPort(sockets.qmp), ControlPort(sockets.control)
            yield Vm(qemu, tuple(shares.values()), cgroup, port, control, sockets.streams, memory)
            undo.pop_all()

    def _list_shares(self, mode: ShareMode) -> Iterator[tuple[str, Path, ShareMode]]:
        """Each with the name by which the machine mounts it."""
        yield "shared", SHARE, mode
        if self.order.spec.image is None:
            yield "system", SYSTEM, replace(mode, changes=False)
        if has_remote_mounts(self.order.spec):
            # A server that is slow must stop neither the workspace nor the other mounts.
            yield "remote", REMOTE, ShareMode(changes=True, verifies=False, at_once=REMOTE_AT_ONCE)


@contextlib.contextmanager
def drawn_blueprint(order: VmOrder) -> Iterator[Blueprint]:
    """For an emulated processor. Raises `computer.no-isolation` if a program or the kernel is missing."""
    tools, kernel = find_vm_tools(order.system), find_kernel(order.kernel)
    initramfs = write_initramfs(kernel, find_busybox(order.system))
    memory, cpus = machine_size(order.spec.limits)
    image = order.spec.image
    with contextlib.ExitStack() as stack:
        boots, first = (stack.enter_context(path.open("rb")).fileno() for path in (copy_kernel(kernel), initramfs))
        disk = None if image is None else stack.enter_context(Path(image).expanduser().open("rb")).fileno()
        yield Blueprint(order, Hardware(tools, "tcg", memory, cpus, boots, first, disk), kernel.release)


def _limits_of_host(limits: Limits) -> Limits:
    """What QEMU and virtiofsd may use on the host. The limits of the computer are held inside the machine."""
    return replace(limits, memory=limits.memory + MEMORY_OF_THE_KERNEL + MEMORY_OF_QEMU, processes=256)


def read_console(qemu: subprocess.Popen[bytes]) -> str:
    """The last line that QEMU or the machine has written."""
    if qemu.stdout is None:
        return ""
    os.set_blocking(qemu.stdout.fileno(), False)
    lines = (qemu.stdout.read(MAX_CONSOLE) or b"").decode(errors="replace").split("\n")
    shown = [line.strip() for line in lines if line.strip()]
    return "".join(one for one in shown[-1] if one.isprintable())[:200] if shown else "its console is empty"


def _await_walls(port: ControlPort) -> tuple[str, ...]:
    """Ask the machine's own kernel about the guest until every wall stands."""
    deadline = time.monotonic() + START_TIMEOUT
    missing = "the guest did not appear"
    while time.monotonic() < deadline:
        told = port.ask("status")
        missing = find_missing_wall_inside(told)
        if not missing:
            inside = (*(f"{name} namespace" for name in NAMESPACES), "no network device", "read-only root")
            walls = ("a kernel of its own", *inside, "no new privileges", "no capabilities", "filtered system calls")
            apart = isinstance(told.get("landlock"), int) and told["landlock"] >= MIN_LANDLOCK_VERSION
            return (*walls, SESSIONS_APART) if apart else walls
        time.sleep(0.005)
    raise FreeholdError(
        "computer.no-isolation",
        f"The virtual machine did not build every wall within {START_TIMEOUT:.0f} s: {missing}",
        hint="freehold doctor --backend microvm",
    )


def find_missing_wall_inside(told: Mapping[str, object]) -> str:
    """The first wall that the machine's kernel does not show for the guest; empty if all stand."""
    lines = str(told.get("status")).splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    for name, value in EXPECTED.items():
        if status.get(name) != value:
            return f"{name} is {status.get(name)}"
    if set(status.get("Uid", "").split()) != {str(AGENT_UID)}:
        return f"uid is {status.get('Uid')}"
    if told.get("shared") != []:
        return f"a namespace is the machine's own: {told.get('shared')}"
    return "" if "ro" in str(told.get("root")).split(",") else "its root is writable"


def _has_copied(copying: subprocess.Popen[bytes]) -> bool:
    try:
        return copying.wait(COPY_TIMEOUT) == 0
    except subprocess.TimeoutExpired:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _remove_cgroup(cgroup: Cgroup | None) -> None:
    deadline = time.monotonic() + 10
    while cgroup is not None and not cgroup.remove() and time.monotonic() < deadline:
        cgroup.kill()
        time.sleep(0.005)
