"""The backend itself: checks the spec, then starts a machine."""

import os
from pathlib import Path

from freehold.computer.contract.guest_archive import guest_archive
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.computer.engine.api import find_engine
from freehold.computer.engine.container import ContainerOrder
from freehold.computer.engine.machine import ContainerMachine
from freehold.computer.walls.folder_check import check_folders, check_mounts
from freehold.errors import FreeholdError

DEFAULT_UID = 64242


class ContainerBackend:
    """`name` is "docker" or "podman". A computer runs as `uid`, inside and on the host, if root starts it."""

    def __init__(self, name: str, host: str | None = None, uid: int = DEFAULT_UID) -> None:
        self.name = name
        self._api = find_engine(name, host)
        self._uid = uid if os.geteuid() == 0 else os.geteuid()

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> ContainerMachine:
        if not isinstance(transport, InheritedSocket):
            raise FreeholdError(
                "computer.bad-transport",
                f"The {self.name} backend cannot use {type(transport).__name__}",
                hint="Use the transport that its make_transport returns",
            )
        check_folders(spec)
        check_mounts(spec)
        machine = ContainerMachine(
            self._api, ContainerOrder(spec, transport.listen(), transport.path, guest_archive(), self._uid), transport
        )
        await machine.begin()
        return machine
