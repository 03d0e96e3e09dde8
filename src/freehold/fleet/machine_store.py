"""The machines that the autoscaler has started, below the home: they cost money, so that none may be forgotten."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from freehold.errors import FreeholdError
from freehold.private_file import replace_private_file
from freehold.strict_json import WrongShape, decode


@dataclass(frozen=True)
class StartedMachine:
    """`name` is that of its node. `request` is how Ray recognises what it has asked for."""

    name: str
    kind: str
    request: str
    state: Literal["starting", "joined", "stopping"]
    trouble: str = ""


class MachineStore:
    """Blocking: a small file. When the disk is full `trouble` says so, what is known here goes on, and `write` again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.machines = self._read()
        self.trouble = ""

    def put(self, machine: StartedMachine) -> None:
        self.machines[machine.name] = machine
        self.write()

    def remove(self, name: str) -> None:
        self.machines.pop(name, None)
        self.write()

    def write(self) -> None:
        body = json.dumps([asdict(machine) for machine in self.machines.values()], indent=1)
        try:
            replace_private_file(self._path, body.encode())
        except OSError as error:
            self.trouble = f"{self._path} cannot be written: {error.strerror}"
        else:
            self.trouble = ""

    def _read(self) -> dict[str, StartedMachine]:
        if not self._path.exists():
            return {}
        try:
            found = decode(tuple[StartedMachine, ...], json.loads(self._path.read_bytes()))
        except (ValueError, WrongShape) as error:
            raise FreeholdError(
                "fleet.damaged",
                f"{self._path} cannot be read: {error}",
                hint="End the machines at your provider, then remove the file",
            ) from error
        return {machine.name: machine for machine in found}
