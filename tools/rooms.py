"""The rooms of src/freehold and what each may import: a contract type for import-linter, and the table in the docs.

`[[tool.importlinter.contracts]]` of type `room` in pyproject.toml is the only place where this is written down.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = Path(__file__).parents[1]
PACKAGE = "freehold"

SHARED_MODULES = (
    "freehold",
    "freehold.connection_slots",
    "freehold.installed_version",
    "freehold.errors",
    "freehold.home",
    "freehold.private_file",
    "freehold.strict_json",
    "freehold.tls_trust",
    "freehold.system_folders",
    "freehold.system_packages",
    "freehold.typed_call",
)
"""Belong to no room. Every room may import them, unless it imports nothing at all."""

NOTHING = "nothing"
"""In `may_import`: not even the shared modules."""


@dataclass(frozen=True)
class Room:
    """One folder of src/freehold. `may_import` names rooms, or single modules of rooms, without the package's name."""

    name: str
    offers: str
    may_import: tuple[str, ...]

    def allows(self, module: str) -> bool:
        """Whether a module of this room may import that module."""
        inside = (f"{PACKAGE}.{self.name}", *(f"{PACKAGE}.{name}" for name in self.may_import if name != NOTHING))
        if any(module == name or module.startswith(f"{name}.") for name in inside):
            return True
        return NOTHING not in self.may_import and module in SHARED_MODULES


def read_rooms(pyproject: Path = ROOT / "pyproject.toml") -> list[Room]:
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    return [
        Room(each["room"], each["offers"], tuple(each["may_import"])) for each in contracts if each["type"] == "room"
    ]


def find_forbidden_imports(graph: ImportGraph, room: Room) -> Iterator[tuple[str, str]]:
    """Pairs of (importing module, imported module) that the room does not allow."""
    package = f"{PACKAGE}.{room.name}"
    for module in sorted(graph.find_descendants(package) | {package}):
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported.split(".")[0] == PACKAGE and not room.allows(imported):
                yield module, imported


def describe_rooms(rooms: list[Room]) -> str:
    """The table in docs/architecture.md."""
    rows = [f"| `{room.name}` | {room.offers} | {_describe_imports(room)} |" for room in rooms]
    return "\n".join(["| room | offers | may import |", "|---|---|---|", *rows])


def _describe_imports(room: Room) -> str:
    if NOTHING in room.may_import:
        return "nothing of ours"
    return ", ".join(f"`{name}`" for name in sorted(room.may_import)) or "only the shared modules"


class RoomContract(Contract):
    """Every module of a room imports, of ours, only the room itself, the shared modules and what `may_import` names."""

    type_name = "room"

    room = fields.StringField()
    offers = fields.StringField()
    may_import = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        options = self.contract_options
        room = Room(options["room"], options["offers"], tuple(options["may_import"]))
        forbidden = list(find_forbidden_imports(graph, room))
        return ContractCheck(kept=not forbidden, metadata={"forbidden": forbidden})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for module, imported in check.metadata["forbidden"]:
            output.print_error(f"{module} imports {imported}")
        output.new_line()
