"""The slots of one Freehold, made from its manifest."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from freehold.home import Home
from freehold.manifest import Manifest
from freehold.manifest.checks.slots import BUILT
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots.contract import SLOT_NAMES, FilteredImplementation, SlotContract, SlotImplementation, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.off import OffSlot
from freehold.slots.paired import PairedFreeholds
from freehold.slots.settings import ExternalSettings
from freehold.slots.slot import Slot
from freehold.timeline import Timeline

if TYPE_CHECKING:
    from freehold.slots.memory.embedder import EmbedTexts
    from freehold.slots.orchestrator.engine import RunEngine
    from freehold.slots.privacy.filter import PrivacyFilter


@dataclass
class EngineBox:
    """Holds what runs agents, once the gateway has it. A command has none."""

    engine: "RunEngine | None" = None


@dataclass(frozen=True)
class SlotPlace:
    """Where slots are kept: what their implementations get."""

    home: Home
    timeline: Timeline
    find_secret: Callable[[str], Secret]
    environ: Mapping[str, str]
    embed: "EmbedTexts | None" = None
    """Asks a model provider for vectors of texts. None where no model gateway runs."""
    engine: EngineBox = field(default_factory=EngineBox)
    paired: PairedFreeholds = field(default_factory=PairedFreeholds)


def read_section(manifest: Manifest, name: SlotName) -> SlotSection:
    section: SlotSection = getattr(manifest.slots, name)
    return section


# Each slot is a folder of this room with the same modules: contract (CONTRACT), local (make_local), external
# (make_external) and trial (PARTS). A module is imported when it is needed, so that a slot that is off costs nothing.


def load_part(name: SlotName, module: str, part: str) -> Any:
    return getattr(import_module(f"freehold.slots.{name}.{module}"), part)


def load_contract(name: SlotName) -> SlotContract:
    """The contract of a slot. One that this version does not have yet has no calls."""
    if name not in BUILT:
        return SlotContract(name, 0, ())
    contract: SlotContract = load_part(name, "contract", "CONTRACT")
    return contract


def list_built() -> tuple[SlotName, ...]:
    return tuple(name for name in SLOT_NAMES if name in BUILT)


def make_local(name: SlotName, place: SlotPlace, values: Mapping[str, str]) -> SlotImplementation:
    made: SlotImplementation = load_part(name, "local", "make_local")(place, _settings(name, place, values))
    return made


def make_external(name: SlotName, place: SlotPlace, values: Mapping[str, str]) -> SlotImplementation:
    made: SlotImplementation = load_part(name, "external", "make_external")(place, _settings(name, place, values))
    return made


def _settings(name: SlotName, place: SlotPlace, values: Mapping[str, str]) -> ExternalSettings:
    return ExternalSettings(name, values, place.environ, place.find_secret, place.paired)


def make_slot(name: SlotName, section: SlotSection, place: SlotPlace) -> Slot:
    """The slot as the manifest wants it. What an implementation needs is imported only when it is chosen."""
    implementation, privacy = _choose(name, section, place), _make_filter(name, section, place)
    slot = Slot(name, partial(load_contract, name), implementation, place.timeline, privacy=privacy)
    if privacy is not None and isinstance(implementation, FilteredImplementation):
        implementation.filter_by(slot.clean_leaving)
    return slot


def _make_filter(name: SlotName, section: SlotSection, place: SlotPlace) -> "PrivacyFilter | None":
    if section.privacy == "off" or section.mode == "off":
        return None
    from freehold.slots.privacy.filter import PrivacyFilter
    from freehold.slots.privacy.machine import read_machine_user
    from freehold.slots.privacy.pseudonyms import Pseudonyms

    return PrivacyFilter(name, section.privacy, Pseudonyms(place.home.root, place.timeline), read_machine_user())


def _choose(name: SlotName, section: SlotSection, place: SlotPlace) -> SlotImplementation:
    if section.mode == "off" or name not in BUILT:
        return OffSlot(name)
    try:
        if section.mode == "local":
            return make_local(name, place, section.settings)
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
        self.engine = place.engine
        self.paired = place.paired
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


def make_place(
    home: Home,
    timeline: Timeline,
    find_secret: Callable[[str], Secret],
    embed: "EmbedTexts | None" = None,
    paired: PairedFreeholds | None = None,
) -> SlotPlace:
    return SlotPlace(home, timeline, find_secret, os.environ, embed, paired=paired or PairedFreeholds())
