"""Boots a virtual machine and starts the guest in it. Blocking: runs in the thread of the computer."""

import contextlib
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_UID
from freehold.computer.contract.report import Isolation, LimitMechanism
from freehold.computer.contract.spec import MIB, ComputerSpec, Limits
from freehold.computer.microvm.control import ControlPort
from freehold.computer.microvm.initramfs import copy_kernel, write_initramfs
from freehold.computer.microvm.kernel import find_kernel
from freehold.computer.microvm.layout import SHARE, SYSTEM, describe_share, link_system, plan_inside
from freehold.computer.microvm.requirements import KVM, VmTools, find_vm_tools
from freehold.computer.microvm.shared_folders import SharedFolders, share_folder
from freehold.computer.walls.bind_stage import stage_binds
from freehold.computer.walls.cgroups import Cgroup, find_parents, make_cgroup, remove_stale_cgroups
from freehold.computer.walls.landlock import MIN_LANDLOCK_VERSION, SESSIONS_APART
from freehold.computer.walls.ownership import chown_tree
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError

KVM_TIMEOUT = 5.0
"""Seconds in which a machine with hardware support must have booted. On some hosts /dev/kvm exists and does not work."""
BOOT_TIMEOUT = 120.0
MAX_CONSOLE = 64 * 1024
START_TIMEOUT = 60.0
MEMORY_OF_THE_KERNEL = 160 * MIB
"""Memory of the machine beyond the limit: its kernel, its first files and pid 1."""
MEMORY_OF_QEMU = 512 * MIB
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
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

_kvm_fails = False


class DidNotBoot(Exception):
    """Says what the console showed last."""


@dataclass(frozen=True)
class VmOrder:
    """What to start. `uid` owns the folders on the host; `kernel` is the folder with boot/ and lib/modules/."""

    spec: ComputerSpec
    guest: Path
    uid: int
    kernel: Path
    cancelled: threading.Event


@dataclass(frozen=True)
class Vm:
    """A running machine and the handles to end it."""

    qemu: subprocess.Popen[bytes]
    shares: tuple[SharedFolders, ...]
    cgroup: Cgroup | None
    control: ControlPort
    streams: socket.socket
    isolation: Isolation

    def kill(self) -> None:
        self.qemu.kill()
        if self.cgroup is not None:
            self.cgroup.kill()

    def remove(self) -> None:
        """Kill it and return when no process and no cgroup is left."""
        self.kill()
        _remove(self.qemu, self.shares, self.cgroup)
        self.control.close()


def start_vm(order: VmOrder) -> Vm:
    """Raises if a wall cannot be built, and then leaves nothing behind.

    The mount namespace of the calling thread changes permanently: use a thread of its own.
    """
    global _kvm_fails
    tools, kernel = find_vm_tools(), find_kernel(order.kernel)
    initramfs = write_initramfs(kernel)
    for folder in (order.spec.workspace, order.spec.home):
        chown_tree(folder, order.uid)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in (copy_kernel(kernel), initramfs)]
        if order.spec.image is not None:
            files.append(stack.enter_context(Path(order.spec.image).expanduser().open("rb")))
        stage_binds(describe_share(order.spec, order.guest))
        if order.spec.image is None:
            link_system()
        descriptors = [file.fileno() for file in files]
        if os.access(KVM, os.R_OK | os.W_OK) and not _kvm_fails:
            try:
                return _boot(order, tools, descriptors, kernel.release, "kvm", KVM_TIMEOUT)
            except DidNotBoot:
                _kvm_fails = not order.cancelled.is_set()
        try:
            return _boot(order, tools, descriptors, kernel.release, "tcg", BOOT_TIMEOUT)
        except DidNotBoot as silence:
            raise FreeholdError(
                "computer.no-isolation",
                f"The virtual machine did not boot the kernel {kernel.release}: {silence}",
                hint="freehold doctor --backend microvm tries it again",
            ) from None


def _boot(order: VmOrder, tools: VmTools, files: list[int], release: str, accelerator: str, timeout: float) -> Vm:
    """Raises DidNotBoot if pid 1 of the machine does not report in time."""
    parents = find_parents()
    remove_stale_cgroups(parents)
    cgroup = make_cgroup(_limits_of_host(order.spec.limits), parents)
    entering = [] if cgroup is None else cgroup.entering_command()
    qemu: subprocess.Popen[bytes] | None = None
    shares: list[SharedFolders] = []
    control, control_inside = socket.socketpair()
    streams, streams_inside = socket.socketpair()
    port = ControlPort(control)
    vm: Vm | None = None
    try:
        shares.append(share_folder(tools, SHARE, order.uid, entering, changes=True))
        if order.spec.image is None:
            shares.append(share_folder(tools, SYSTEM, order.uid, entering, changes=False))
        ports = [control_inside.fileno(), streams_inside.fileno(), *(each.connection.fileno() for each in shares)]
        arguments = list(_describe_machine(order, tools, files, ports, accelerator))
        qemu = _start_qemu(order, entering, arguments, [*files, *ports])
        control_inside.close()
        streams_inside.close()
        for share in shares:
            share.connection.close()
        process = qemu
        if not port.wait_hello(timeout, lambda: process.poll() is None and not order.cancelled.is_set()):
            raise DidNotBoot(_read_console(qemu))
        port.wake()
        plan = plan_inside(order.spec, list(compile_filters()), min(share.max_files for share in shares) // 3)
        port.ask("start", START_TIMEOUT, plan=plan)
        walls = _await_walls(port)
        how = "hardware support" if accelerator == "kvm" else "emulation"
        runs_as = f"uid {order.uid} in a virtual machine ({how}, kernel {release})"
        isolation = Isolation("microvm", tools.version, runs_as, walls, IN_THE_MACHINE)
        vm = Vm(qemu, tuple(shares), cgroup, port, streams, isolation)
        return vm
    finally:
        if vm is None:
            _remove(qemu, shares, cgroup)
            for each in (control, control_inside, streams, streams_inside):
                each.close()


def _read_console(qemu: subprocess.Popen[bytes]) -> str:
    """The last line that QEMU or the machine has written."""
    if qemu.stdout is None:
        return ""
    os.set_blocking(qemu.stdout.fileno(), False)
    lines = (qemu.stdout.read(MAX_CONSOLE) or b"").decode(errors="replace").split("\n")
    shown = [line.strip() for line in lines if line.strip()]
    return "".join(one for one in shown[-1] if one.isprintable())[:200] if shown else "its console is empty"


def _limits_of_host(limits: Limits) -> Limits:
    """What QEMU and virtiofsd may use on the host. The limits of the computer are held inside the machine."""
    return replace(limits, memory=limits.memory + MEMORY_OF_THE_KERNEL + MEMORY_OF_QEMU, processes=256)


def _start_qemu(order: VmOrder, entering: list[str], arguments: list[str], files: list[int]) -> subprocess.Popen[bytes]:
    """As a user that owns nothing. It dies with the thread that started it."""
    uid = order.uid + 2
    groups = f"--groups={KVM.stat().st_gid}" if "kvm" in arguments else "--clear-groups"
    setpriv = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", groups, "--no-new-privs", "--inh-caps=-all"]
    return subprocess.Popen(
        [*entering, *setpriv, "--pdeathsig=KILL", "--", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=files,
        start_new_session=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )


def _describe_machine(
    order: VmOrder, tools: VmTools, files: list[int], ports: list[int], accelerator: str
) -> Iterator[str]:
    memory = (order.spec.limits.memory + MEMORY_OF_THE_KERNEL) // MIB
    cpus = max(1, min(math.ceil(order.spec.limits.cpus), os.cpu_count() or 1))
    control, streams, *shares = ports
    yield from (tools.qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-sandbox", _SANDBOX)
    yield from ("-machine", "q35,memory-backend=memory,usb=off,graphics=off", "-smp", str(cpus), "-m", f"{memory}M")
    emulated = accelerator == "tcg"
    yield from ("-accel", "tcg,thread=multi,tb-size=128" if emulated else "kvm", "-cpu", "max" if emulated else "host")
    yield from ("-object", f"memory-backend-memfd,id=memory,size={memory}M,share=on")
    yield from ("-kernel", f"/proc/self/fd/{files[0]}", "-initrd", f"/proc/self/fd/{files[1]}")
    words = "console=ttyS0 quiet panic=-1 reboot=t tsc=reliable no_timer_check random.trust_cpu=on swiotlb=noforce"
    yield from ("-append", f"{words} mitigations=off" if emulated else words)
    yield from ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
    yield from ("-device", "virtio-serial-pci")
    for name, number in (("control", control), ("streams", streams)):
        yield from ("-chardev", f"socket,id={name},fd={number}")
        yield from ("-device", f"virtserialport,chardev={name},name={name}")
    for name, number in zip(("shared", "system"), shares, strict=False):
        yield from ("-chardev", f"socket,id={name},fd={number}")
        yield from ("-device", f"vhost-user-fs-pci,chardev={name},tag={name}")
    if len(files) > 2:
        yield from ("-drive", f"file=/proc/self/fd/{files[2]},if=none,id=disk,format=raw,readonly=on")
        yield from ("-device", "virtio-blk-pci,drive=disk")


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


def _remove(qemu: subprocess.Popen[bytes] | None, shares: Sequence[SharedFolders], cgroup: Cgroup | None) -> None:
    processes = [share.process for share in shares] + ([] if qemu is None else [qemu])
    for process in processes:
        process.kill()
    if cgroup is not None:
        cgroup.kill()
    for process in processes:
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    for share in shares:
        share.connection.close()
    deadline = time.monotonic() + 10
    while cgroup is not None and not cgroup.remove() and time.monotonic() < deadline:
        cgroup.kill()
        time.sleep(0.005)
