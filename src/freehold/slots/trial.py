"""`freehold slots try`: does to an external slot what it will have to do, in a place of its own that is removed again."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from freehold.slots.contract import SlotImplementation, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.host import SlotPlace, make_external
from freehold.slots.postgres import PostgresTables

TrialPart = tuple[str, Callable[[SlotImplementation], Awaitable[None]]]
"""What is tried, in words, and the act itself, which raises `SlotError` when the slot does something else."""


@dataclass(frozen=True)
class TrialStep:
    """One thing that was tried. `error` says what went wrong."""

    name: str
    seconds: float
    error: str | None = None
    hint: str = ""


async def try_slot(name: SlotName, place: SlotPlace, settings: Mapping[str, str]) -> AsyncIterator[TrialStep]:
    """Each step as it is done. The first failure is the last step. Nothing is left behind, and nothing is recorded."""
    try:
        store = make_external(name, place, {**settings, "schema": f"freehold_try_{secrets.token_hex(4)}"})
    except SlotError as error:
        yield TrialStep("Read the settings", 0.0, error.message, error.next_step)
        return
    parts: list[TrialPart] = [("Connect and make the tables", _connect), ("Ask whether it is well", _health)]
    try:
        for title, act in (*parts, *_parts_of(name)):
            begin = time.perf_counter()
            try:
                await act(store)
            except SlotError as error:
                yield TrialStep(title, time.perf_counter() - begin, error.message, error.next_step)
                return
            yield TrialStep(title, time.perf_counter() - begin)
    finally:
        if isinstance(store, PostgresTables):
            with suppress(SlotError):
                await store.drop_schema()
        await store.close()


async def _connect(store: SlotImplementation) -> None:
    await store.connect()


async def _health(store: SlotImplementation) -> None:
    await store.health()


def _parts_of(name: SlotName) -> tuple[TrialPart, ...]:
    if name == "beads":
        from freehold.slots.beads.trial import PARTS

        return PARTS
    return ()
