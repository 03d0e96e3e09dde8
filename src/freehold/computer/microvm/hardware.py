"""What QEMU is told about the machine, and how it is started: as a user that owns nothing, with descriptors only."""

import fcntl
import math
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from freehold.computer.contract.spec import MIB, Limits
from freehold.computer.microvm.requirements import KVM, VmTools

MEMORY_OF_THE_KERNEL = 160 * MIB
"""Memory of the machine beyond the limit: its kernel, its first files and pid 1."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True)
class Hardware:
    """`kernel`, `initramfs` and `disk` are descriptors; `disk` may be missing. `accelerator` is "kvm" or "tcg"."""

    tools: VmTools
    accelerator: str
    memory: int
    cpus: int
    kernel: int
    initramfs: int
    disk: int | None

    @property
    def is_emulated(self) -> bool:
        return self.accelerator == "tcg"


def machine_size(limits: Limits) -> tuple[int, int]:
    """Bytes of memory and the number of processors of a machine with these limits."""
    memory = (limits.memory + MEMORY_OF_THE_KERNEL) // MIB * MIB
    return memory, max(1, min(math.ceil(limits.cpus), os.cpu_count() or 1))


@dataclass(frozen=True)
class VmSockets:
    """The ends of the host: QEMU's monitor, and two ports of the machine. Their other ends are QEMU's."""

    qmp: socket.socket
    control: socket.socket
    streams: socket.socket
    inside: tuple[socket.socket, socket.socket, socket.socket]

    @classmethod
    def create(cls) -> "VmSockets":
        (qmp, one), (control, two), (streams, three) = (socket.socketpair() for _ in range(3))
        return cls(qmp, control, streams, (one, two, three))

    def close_inside(self) -> None:
        for each in self.inside:
            each.close()

    def close(self) -> None:
        self.close_inside()
        for each in (self.qmp, self.control, self.streams):
            each.close()


def create_memory(size: int) -> int:
    """The memory of a machine: a file without a name that cannot change its size, whatever QEMU does."""
    descriptor = os.memfd_create("memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


def start_qemu(
    hardware: Hardware,
    uid: int,
    entering: list[str],
    sockets: VmSockets,
    shares: Mapping[str, socket.socket],
    memory: int,
    *,
    waits: bool,
) -> subprocess.Popen[bytes]:
    """It dies with the thread that started it. `shares` have the names by which the machine mounts them.

    With `waits` it loads a saved state before it runs.
    """
    files = [hardware.kernel, hardware.initramfs, memory, *([] if hardware.disk is None else [hardware.disk])]
    ports = [each.fileno() for each in (*sockets.inside, *shares.values())]
    groups = "--clear-groups" if hardware.is_emulated else f"--groups={KVM.stat().st_gid}"
    setpriv = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", groups, "--no-new-privs", "--inh-caps=-all"]
    arguments = [
        *_describe_machine(hardware, memory),
        *_describe_ports(ports, list(shares)),
        *(["-S", "-incoming", "defer"] if waits else []),
    ]
    return subprocess.Popen(
        [*entering, *setpriv, "--pdeathsig=KILL", "--", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[*files, *ports],
        start_new_session=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )


def _describe_machine(hardware: Hardware, memory: int) -> Iterator[str]:
    emulated = hardware.is_emulated
    size = f"{hardware.memory // MIB}M"
    yield from (hardware.tools.qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-sandbox", _SANDBOX)
    yield from ("-machine", "q35,memory-backend=memory,usb=off,graphics=off", "-smp", str(hardware.cpus), "-m", size)
    yield from ("-accel", "tcg,thread=multi,tb-size=128" if emulated else "kvm", "-cpu", "max" if emulated else "host")
    # Not a memfd of QEMU's own: this process keeps the memory, and QEMU must see it as a file to leave it alone.
    yield from ("-object", f"memory-backend-file,id=memory,size={size},share=on,mem-path=/proc/self/fd/{memory}")
    yield from ("-kernel", f"/proc/self/fd/{hardware.kernel}", "-initrd", f"/proc/self/fd/{hardware.initramfs}")
    words = "console=ttyS0 quiet panic=-1 reboot=t tsc=reliable no_timer_check random.trust_cpu=on swiotlb=noforce"
    yield from ("-append", f"{words} mitigations=off" if emulated else words)
    if hardware.disk is not None:
        yield from ("-drive", f"file=/proc/self/fd/{hardware.disk},if=none,id=disk,format=raw,readonly=on")
        yield from ("-device", "virtio-blk-pci,drive=disk")


def _describe_ports(ports: Sequence[int], names: Sequence[str]) -> Iterator[str]:
    monitor, control, streams, *shares = ports
    yield from ("-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control")
    yield from ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
    yield from ("-device", "virtio-serial-pci")
    for name, number in (("control", control), ("streams", streams)):
        yield from ("-chardev", f"socket,id={name},fd={number}")
        yield from ("-device", f"virtserialport,chardev={name},name={name}")
    for name, number in zip(names, shares, strict=True):
        yield from ("-chardev", f"socket,id={name},fd={number}")
        yield from ("-device", f"vhost-user-fs-pci,chardev={name},tag={name}")
