"""What commands that use a slot share. They open it themselves, so Freehold need not run."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from freehold.cli._options import require_home
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.manifest import Manifest
    from freehold.slots import Slot, SlotCall, SlotName
    from freehold.slots.host import SlotPlace
    from freehold.slots.paired import PairedFreeholds
    from freehold.timeline import Timeline

T = TypeVar("T")


@asynccontextmanager
async def open_place(home: Home) -> "AsyncIterator[tuple[Manifest, SlotPlace]]":
    """The manifest, and what slots of this home are made with."""
    from freehold.egress.vault import Vault
    from freehold.manifest import require_manifest
    from freehold.slots.host import make_place
    from freehold.timeline import Timeline

    require_home(home)
    manifest = require_manifest(home.manifest, os.environ).manifest
    with Timeline(home.timeline) as timeline:
        paired = find_paired(home, manifest, timeline)
        yield manifest, make_place(home, timeline, Vault(home.vault).get, paired=paired)


def find_paired(home: Home, manifest: "Manifest", timeline: "Timeline") -> "PairedFreeholds":
    """The neighbours that a slot may be kept by. What signs requests to them is loaded when one is asked."""
    from freehold.features.registry import list_features, load_reference
    from freehold.slots.paired import PairedFreeholds

    for feature in list_features():
        if feature.paired is not None:
            found: PairedFreeholds = load_reference(feature.paired)(home, manifest, timeline)
            return found
    return PairedFreeholds()


def use_slot(home: Home, name: "SlotName", work: "Callable[[Slot], Awaitable[T]]") -> T:
    """The result of `work` with the connected slot."""
    from freehold.slots.host import open_slot

    async def run() -> T:
        async with open_place(home) as (manifest, place), open_slot(name, manifest, place) as slot:
            return await work(slot)

    return asyncio.run(run())


def call_slot(home: Home, name: "SlotName", request: "SlotCall[T]") -> T:
    """The reply to one call of the owner."""
    from freehold.slots import SlotCaller

    return use_slot(home, name, lambda slot: slot.call(request, SlotCaller("owner")))
