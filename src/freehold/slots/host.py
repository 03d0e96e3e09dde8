"""The slots of one Freehold, made from its manifest."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots.contract import SLOT_NAMES, SlotContract, SlotImplementation, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.off import OffSlot
from freehold.slots.settings import ExternalSettings
from freehold.slots.slot import Slot
from freehold.timeline import Timeline


@dataclass(frozen=True)
class SlotPlace:
    """Where slots are kept: what their implementations get."""

    home: Home
    timeline: Timeline
    find_secret: Callable[[str], Secret]
    environ: Mapping[str, str]


def read_section(manifest: Manifest, name: SlotName) -> SlotSection:
    section: SlotSection = getattr(manifest.slots, name)
    return section


def find_contract(name: SlotName) -> SlotContract | None:
    """The contract of a slot; None for one that this version does not have yet."""
    if name == "beads":
        from freehold.slots.beads.contract import BEADS

        return BEADS
    return None


def list_built() -> tuple[SlotName, ...]:
    return tuple(name for name in SLOT_NAMES if find_contract(name) is not None)


def make_local(name: SlotName, place: SlotPlace) -> SlotImplementation:
    if name == "beads":
        from freehold.slots.beads.local import make_local as make_local_beads

        return make_local_beads(place.timeline)
    raise _not_built(name)


def make_external(name: SlotName, place: SlotPlace, values: Mapping[str, str]) -> SlotImplementation:
    settings = ExternalSettings(name, values, place.environ, place.find_secret)
    if name == "beads":
        from freehold.slots.beads.external import make_external as make_external_beads

        return make_external_beads(settings)
    raise _not_built(name)


def make_slot(name: SlotName, section: SlotSection, place: SlotPlace) -> Slot:
    """The slot as the manifest wants it. What an implementation needs is imported only when it is chosen."""
    contract = find_contract(name) or SlotContract(name, 0, ())
    return Slot(contract, _choose(name, section, place), place.timeline)


def _choose(name: SlotName, section: SlotSection, place: SlotPlace) -> SlotImplementation:
    if section.mode == "off" or find_contract(name) is None:
        return OffSlot(name)
    if section.mode == "local":
        return make_local(name, place)
    try:
        return make_external(name, place, section.settings)
    except SlotError as error:
        return BrokenSlot(error)


class BrokenSlot:
    """A slot whose settings cannot be used. It says so, instead of keeping Freehold from starting."""

    kind = "external"
    records_events = False

    def __init__(self, error: SlotError) -> None:
        self._error = error

    async def connect(self) -> None:
        raise self._error

    async def health(self) -> None:
        raise self._error

    async def close(self) -> None:
        """Nothing was opened."""

    async def call(self, request: Any, caller: Any) -> Any:
        raise self._error


class SlotHost:
    """All slots of a Freehold, each by its name."""

    def __init__(self, manifest: Manifest, place: SlotPlace) -> None:
        self._slots = {name: make_slot(name, read_section(manifest, name), place) for name in SLOT_NAMES}

    def get(self, name: SlotName) -> Slot:
        return self._slots[name]

    @property
    def beads(self) -> Slot:
        return self._slots["beads"]

    def list(self) -> list[Slot]:
        return list(self._slots.values())

    async def run(self) -> None:
        """Keeps all slots connected until cancelled."""
        async with asyncio.TaskGroup() as group:
            for slot in self._slots.values():
                group.create_task(slot.run())


@asynccontextmanager
async def open_slot(name: SlotName, manifest: Manifest, place: SlotPlace) -> AsyncIterator[Slot]:
    """One connected slot for a command that ends soon. Raises `SlotError` when it cannot be reached."""
    slot = make_slot(name, read_section(manifest, name), place)
    try:
        await slot.connect()
        yield slot
    finally:
        await slot.close()


def make_place(home: Home, timeline: Timeline, find_secret: Callable[[str], Secret]) -> SlotPlace:
    return SlotPlace(home, timeline, find_secret, os.environ)


def _not_built(name: str) -> FreeholdError:
    return FreeholdError("slot.not-built", f"This version of Freehold has no {name} slot")
