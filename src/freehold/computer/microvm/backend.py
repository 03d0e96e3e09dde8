"""The backend itself: checks the spec, then starts a machine."""

import threading
from pathlib import Path, PurePosixPath

from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.contract.guest_archive import guest_archive
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.computer.microvm.machine import VmMachine
from freehold.computer.microvm.requirements import find_vm_tools, vm_system
from freehold.computer.microvm.vm import VmOrder
from freehold.computer.walls.folder_check import check_folders, check_mounts
from freehold.errors import FreeholdError

DEFAULT_UID = 64242
EROFS_MAGIC = b"\xe2\xe1\xf5\xe0"


def check_remote_mounts(spec: ComputerSpec) -> None:
    """A remote mount is a link to the place where the machine's kernel finds it. No other folder may hold that link."""
    mounted = [mount.target for mount in spec.mounts] + [mount.target for mount in spec.memory_mounts]
    for target in (PurePosixPath(mount.target) for mount in spec.mounts if mount.follows):
        for other in map(PurePosixPath, (WORKSPACE, AGENT_HOME, *mounted)):
            if target != other and (target.is_relative_to(other) or other.is_relative_to(target)):
                raise FreeholdError(
                    "computer.mount-refused",
                    f"The mount targets {str(target)!r} and {str(other)!r} overlap, and one of them is a remote folder",
                    hint="Choose another folder, such as /mnt/remote, in computer.mounts",
                )


class MicroVm:
    """`system` is the folder of a system with QEMU, virtiofsd, busybox and a kernel; see `vm_system`.

    An image whose packages have a kernel brings its own.
    """

    name = "microvm"

    def __init__(self, uid: int = DEFAULT_UID, system: Path | None = None) -> None:
        self._system = system or vm_system()
        self._uid = uid
        find_vm_tools(self._system)

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> VmMachine:
        if not isinstance(transport, InheritedSocket):
            raise FreeholdError(
                "computer.bad-transport",
                f"The microvm backend cannot use {type(transport).__name__}",
                hint="Use the transport that its make_transport returns",
            )
        check_folders(spec)
        check_mounts(spec)
        check_remote_mounts(spec)
        kernel = self._find_kernel_folder(spec)
        order = VmOrder(spec, guest_archive(), self._uid, self._system, kernel, threading.Event())
        # The machine has its own copy: the transport closes the original when clients may connect.
        machine = VmMachine(order, transport, transport.listen().dup())
        await machine.begin()
        return machine

    def _find_kernel_folder(self, spec: ComputerSpec) -> Path:
        """Also checks the disk image. Its kernel is in the root folder that was built with it."""
        if spec.image is None:
            return self._system
        disk = Path(spec.image).expanduser().absolute()
        try:
            with disk.open("rb") as file:
                found = file.read(1028)[1024:]
        except OSError as error:
            found = str(error).encode()
        if found != EROFS_MAGIC:
            raise FreeholdError(
                "computer.unknown-image",
                f"computer.image is {spec.image!r}, and that is not a disk of freehold build",
                hint="freehold build, or leave computer.image out",
            )
        built = disk.parent / "root"
        return built if any((built / "boot").glob("vmlinuz-*")) else self._system
