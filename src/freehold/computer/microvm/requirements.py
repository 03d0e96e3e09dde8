"""The programs that a micro-VM needs on this machine."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from freehold.computer.microvm.initramfs import find_busybox
from freehold.computer.microvm.kernel import VmKernel, find_kernel
from freehold.errors import FreeholdError

QEMU = "qemu-system-x86_64"
VIRTIOFSD = ("/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd")
KVM = Path("/dev/kvm")


@dataclass(frozen=True)
class VmTools:
    """`shares_by_options`: this virtiofsd has the options of the older program, which QEMU before 8.0 brings."""

    qemu: str
    version: str
    virtiofsd: str
    shares_by_options: bool


@cache
def find_vm_tools() -> VmTools:
    """Raises `computer.no-isolation` for the first that is missing."""
    if os.geteuid() != 0:
        raise FreeholdError(
            "computer.no-isolation",
            "Only root can start a micro-VM: its folders are shared by a program with a user id of its own",
            hint="Run Freehold as root, or set computer.backend to bubblewrap",
        )
    qemu = shutil.which(QEMU, path="/usr/bin:/usr/local/bin")
    if qemu is None:
        raise FreeholdError("computer.no-isolation", f"{QEMU} is missing", hint="apt install qemu-system-x86")
    virtiofsd = next((path for path in VIRTIOFSD if os.access(path, os.X_OK)), None)
    if virtiofsd is None:
        raise FreeholdError("computer.no-isolation", "virtiofsd is missing", hint="apt install virtiofsd")
    words = _read_output(qemu, "--version").split()
    return VmTools(
        qemu, words[3] if len(words) > 3 else "", virtiofsd, "-o source" in _read_output(virtiofsd, "--help")
    )


def _read_output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=20)
    return done.stdout + done.stderr


def check_vm_requirements(kernel_folder: Path = Path("/")) -> VmKernel:
    """Raises `computer.no-isolation` for what is missing; the kernel that would be booted otherwise."""
    find_vm_tools()
    find_busybox()
    return find_kernel(kernel_folder)
