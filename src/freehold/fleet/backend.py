"""The backend `ray`: a computer on another machine, behind the same `Computer`."""

from dataclasses import replace
from pathlib import Path

from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.errors import FreeholdError
from freehold.fleet.machine import RemoteMachine
from freehold.fleet.place import Place
from freehold.fleet.remote_spec import describe_spec, list_mounts
from freehold.strict_json import encode


class RayBackend:
    """Talks to the fleet of this machine, which finds room, sends the folders and relays the links."""

    name = "ray"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._starting: list[RemoteMachine] = []

    @property
    def waits_for(self) -> str:
        return next((machine.waits_for for machine in self._starting if machine.waits_for), "")

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> RemoteMachine:
        if not isinstance(transport, InheritedSocket):
            raise FreeholdError(
                "computer.bad-transport",
                f"The backend ray cannot use {type(transport).__name__}",
                hint="Use the transport that its make_transport returns",
            )
        for folder in (spec.workspace, spec.home):
            if not folder.is_dir():
                raise FreeholdError("computer.no-folder", f"{folder} is not a folder", hint=f"mkdir -p {folder}")
        place = self._place
        request = {
            "spec": encode(replace(describe_spec(spec, ()), gpus=place.gpus)),
            "workspace": str(spec.workspace),
            "home": str(spec.home),
            "mounts": {mount.target: str(mount.source) for mount in list_mounts(spec)},
            "priority": place.priority,
            "strategy": place.strategy,
            "who": place.who,
            "labels": place.labels,
        }
        machine = RemoteMachine(place.socket, request, transport)
        self._starting.append(machine)
        try:
            await machine.begin()
        finally:
            self._starting.remove(machine)
        return machine
