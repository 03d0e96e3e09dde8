"""`freehold slots try`: does to an external slot what it will have to do, in a place of its own that is removed again."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from freehold.slots.contract import SlotImplementation, SlotName, TrialStore
from freehold.slots.errors import SlotError
from freehold.slots.host import SlotPlace, make_external

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
    unique = f"freehold_try_{secrets.token_hex(4)}"
    module = import_module(f"freehold.slots.{name}.trial")
    make, remove = getattr(module, "make_trial", _make_schema), getattr(module, "remove_trial", _drop_schema)
    try:
        store: SlotImplementation = make(name, place, settings, unique)
    except SlotError as error:
        yield TrialStep("Read the settings", 0.0, error.message, error.next_step)
        return
    first = "Connect and make the tables" if isinstance(store, TrialStore) else "Connect"
    parts: list[TrialPart] = [(first, _connect), ("Ask whether it is well", _health)]
    own_parts = getattr(module, "NEIGHBOUR_PARTS", module.PARTS) if store.kind == "freehold" else module.PARTS
    try:
        for title, act in (*parts, *own_parts):
            begin = time.perf_counter()
            try:
                await act(store)
            except SlotError as error:
                yield TrialStep(title, time.perf_counter() - begin, error.message, error.next_step)
                return
            yield TrialStep(title, time.perf_counter() - begin)
    finally:
        with suppress(SlotError):
            await remove(store)
        await store.close()


def _make_schema(name: SlotName, place: SlotPlace, settings: Mapping[str, str], unique: str) -> SlotImplementation:
    """In a schema of its own. A slot that is not in a database has a `make_trial` and a `remove_trial` of its own."""
    return make_external(name, place, {**settings, "schema": unique})


async def _drop_schema(store: SlotImplementation) -> None:
    if isinstance(store, TrialStore):
        await store.drop_schema()


async def _connect(store: SlotImplementation) -> None:
    await store.connect()


async def _health(store: SlotImplementation) -> None:
    await store.health()
