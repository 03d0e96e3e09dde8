"""The backend itself: checks the spec, then starts a machine."""

import os
from pathlib import Path

from freehold.computer.bubblewrap.layout import check_image
from freehold.computer.bubblewrap.machine import BubblewrapMachine
from freehold.computer.bubblewrap.sandbox import SandboxOrder
from freehold.computer.contract.guest_archive import guest_archive
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.computer.walls.folder_check import check_folders, check_mounts
from freehold.errors import FreeholdError

DEFAULT_UID = 64242


class Bubblewrap:
    """`uid` is the host user of a computer that root starts. A computer that another user starts runs as that user."""

    name = "bubblewrap"

    def __init__(self, uid: int = DEFAULT_UID) -> None:
        self._uid = uid if os.geteuid() == 0 else os.geteuid()
        if self._uid == 0:
            raise FreeholdError(
                "computer.no-isolation",
                "A computer must not run as root (uid 0)",
                hint=f"Leave the uid out, which means {DEFAULT_UID}, or give one that is not 0",
            )

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> BubblewrapMachine:
        if not isinstance(transport, InheritedSocket):
            raise FreeholdError(
                "computer.bad-transport",
                f"The bubblewrap backend cannot use {type(transport).__name__}",
                hint="Use the transport that its make_transport returns",
            )
        check_folders(spec)
        check_mounts(spec)
        check_image(spec)
        order = SandboxOrder(spec, transport.listen().fileno(), guest_archive(), self._uid)
        machine = BubblewrapMachine(order, transport)
        await machine.begin()
        return machine
