"""The backend itself: checks the spec, then waits for the computer."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from freehold.computer.attached.attachment import AttachmentOrder
from freehold.computer.attached.machine import AttachedMachine
from freehold.computer.contract.conventions import PACKAGES_PATH
from freehold.computer.contract.guest_archive import guest_archive
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.computer.walls.folder_check import check_folders, check_mounts
from freehold.computer.walls.ownership import chown_tree
from freehold.errors import FreeholdError

DEFAULT_FOLDER = Path("/var/lib/freehold-link")
ROOT_USES_UID = 64242


class AttachedBackend:
    """One computer for each folder. It runs as the user of Freehold, or as 64242 if Freehold is root."""

    name = "attached"

    def __init__(self, host: str | None = None) -> None:
        self._folder = find_link_folder(host)
        self._uid = os.geteuid() or ROOT_USES_UID

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> AttachedMachine:
        if not isinstance(transport, InheritedSocket):
            raise FreeholdError(
                "computer.bad-transport",
                f"The attached backend cannot use {type(transport).__name__}",
                hint="Use the transport that its make_transport returns",
            )
        spec = _leave_out_packages(spec)
        check_folders(spec)
        check_mounts(spec)
        release = _take_folder(self._folder)
        try:
            if os.geteuid() == 0:
                for folder in (spec.workspace, spec.home):
                    chown_tree(folder, self._uid)
            order = AttachmentOrder(spec, transport.listen(), guest_archive(), self._folder, self._uid)
            machine = AttachedMachine(order, transport, release)
        except BaseException:
            release()
            raise
        await machine.begin()
        return machine


def _leave_out_packages(spec: ComputerSpec) -> ComputerSpec:
    """What this machine has prepared for isolates cannot be shown in another container: its image brings its own."""
    return replace(spec, mounts=tuple(one for one in spec.mounts if not one.target.startswith(f"{PACKAGES_PATH}/")))


def find_link_folder(host: str | None) -> Path:
    """Raises `computer.bad-address`."""
    scheme, separator, path = (host or f"unix://{DEFAULT_FOLDER}").partition("://")
    folder = Path(path if separator else scheme)
    if (separator and scheme != "unix") or not folder.is_absolute():
        raise FreeholdError(
            "computer.bad-address",
            f"computer.host is {host!r}: a computer that is reached over a network has one, and so has every program in it",
            hint=f'Share a folder with it: host = "unix://{DEFAULT_FOLDER}"',
        )
    return folder


def _take_folder(folder: Path) -> Callable[[], None]:
    """Hold the folder until the returned function is called. Nobody inside can see the lock: it is not in the folder."""
    name = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    handle = os.open(
        Path(tempfile.gettempdir()) / f"freehold-link-{os.geteuid()}-{name}",
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FreeholdError(
            "computer.only-one",
            "This Freehold has one attached computer, and it is in use: no other can be started here",
            hint='Temporary computers need backend = "bubblewrap", "docker", "podman" or "microvm"',
        ) from None
    return lambda: os.close(handle)
