"""The programs that a micro-VM needs on this machine."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from freehold.computer.microvm.initramfs import find_busybox
from freehold.computer.microvm.kernel import VmKernel, find_kernel
from freehold.errors import FreeholdError

QEMU = ("usr/bin/qemu-system-x86_64", "usr/local/bin/qemu-system-x86_64")
VIRTIOFSD = ("usr/libexec/virtiofsd", "usr/lib/qemu/virtiofsd", "usr/lib/virtiofsd")
KVM = Path("/dev/kvm")
SYSTEM_VARIABLE = "FREEHOLD_VM_SYSTEM"
"""A folder with the programs and the kernel of another system, for a host whose own are too old."""
SAVES_SINCE = 10
"""The first QEMU that was seen to save a machine with shared folders. 7.2 refuses; those between were not tried."""


@dataclass(frozen=True)
class VmTools:
    """`shares_by_options`: this virtiofsd has the options of the older program, which QEMU before 8.0 brings.

    `can_save`: these programs can write a machine with its shared folders to a file, and read it again.
    """

    qemu: str
    version: str
    virtiofsd: str
    shares_by_options: bool
    can_save: bool


def vm_system() -> Path:
    return Path(os.environ.get(SYSTEM_VARIABLE) or "/")


@cache
def find_vm_tools(system: Path) -> VmTools:
    """The programs below `system`. Raises `computer.no-isolation` for the first that is missing."""
    if os.geteuid() != 0:
        raise FreeholdError(
            "computer.no-isolation",
            "Only root can start a micro-VM: its folders are shared by a program with a user id of its own",
            hint="Run Freehold as root, or set computer.backend to bubblewrap",
        )
    qemu = _find_program(system, QEMU)
    if qemu is None:
        raise FreeholdError(
            "computer.no-isolation", "qemu-system-x86_64 is missing", hint="apt install qemu-system-x86"
        )
    virtiofsd = _find_program(system, VIRTIOFSD)
    if virtiofsd is None:
        raise FreeholdError("computer.no-isolation", "virtiofsd is missing", hint="apt install virtiofsd")
    words = _read_output(qemu, "--version").split()
    version = words[3] if len(words) > 3 else ""
    options = _read_output(virtiofsd, "--help")
    major = version.partition(".")[0]
    can_save = major.isdigit() and int(major) >= SAVES_SINCE and "--migration-mode" in options
    return VmTools(qemu, version, virtiofsd, "-o source" in options, can_save)


def _find_program(system: Path, places: tuple[str, ...]) -> str | None:
    return next((str(system / place) for place in places if os.access(system / place, os.X_OK)), None)


def _read_output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=20)
    return done.stdout + done.stderr


def check_vm_requirements(system: Path | None = None) -> VmKernel:
    """Raises `computer.no-isolation` for what is missing; the kernel that would be booted otherwise."""
    system = system or vm_system()
    find_vm_tools(system)
    find_busybox(system)
    return find_kernel(system)
