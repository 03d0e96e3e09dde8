"""The calls that change memories. Each runs in one transaction."""

import secrets
from dataclasses import replace

from freehold.slots.contract import CallContext, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.memory.checks import (
    check_id,
    check_memory_text,
    check_moment,
    check_namespace,
    check_origin,
    invalid,
    may_reach,
    not_found,
)
from freehold.slots.memory.contract import (
    MAX_ENTRIES,
    ForgetMemory,
    ForgottenMemory,
    Memory,
    MemoryOrigin,
    OriginKind,
    StoreMemory,
    UpdateMemory,
)
from freehold.slots.memory.rows import next_stamp, read_memory, remove_memories, write_memory
from freehold.slots.statement import Statement, Steps, ask, ask_one

_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


def new_memory_id() -> str:
    return "m-" + "".join(secrets.choice(_LETTERS) for _ in range(10))


def store_memory(request: StoreMemory, context: CallContext) -> Steps[Memory]:
    caller = context.caller
    check_memory_text(request.text)
    check_namespace(request.namespace, caller)
    if request.expires is not None:
        check_moment("expires", request.expires)
    if request.pinned:
        require_may_pin(caller)
    if caller.session is not None:
        yield from _refuse_when_full()
    memory = Memory(
        id=new_memory_id(),
        namespace=request.namespace,
        text=request.text,
        origin=origin_for(request.origin, caller),
        created=context.now,
        created_by=caller.name,
        updated=context.now,
        expires=request.expires,
        pinned=request.pinned,
        used=0,
        last_used=None,
        version=1,
    )
    yield from write_memory(memory, is_new=True)
    return memory


def origin_for(given: MemoryOrigin | None, caller: SlotCaller) -> MemoryOrigin:
    """What the caller says, as far as it can be the caller's to say: only the owner speaks for the owner."""
    if given is not None:
        check_origin(given)
    if caller.is_owner:
        return given or MemoryOrigin("owner")
    if caller.session is None:
        return given if given is not None and given.kind != "owner" else MemoryOrigin("program")
    kind = given.kind if given is not None and given.kind in ("tool", "web") else "agent"
    return MemoryOrigin(kind, caller.session, given.turn if given else None, given.note if given else None)


def _refuse_when_full() -> Steps[None]:
    row = yield from ask_one("SELECT count(*) FROM memory_entry")
    if row is not None:
        require_room(row[0])


def require_room(entries: int) -> None:
    """For what an agent stores. Raises `memory.conflict`."""
    if entries >= MAX_ENTRIES:
        raise SlotError(
            "memory",
            "conflict",
            f"The memory slot has {entries} entries, and agents can fill it with {MAX_ENTRIES}",
            hint="Forget what is no longer needed, or store with an expiry",
        )


def update_memory(request: UpdateMemory, context: CallContext) -> Steps[Memory]:
    caller = context.caller
    require_may_change(caller)
    if request.pinned is not None:
        require_may_pin(caller)
    before = yield from _lock(request.id, context)
    if request.version is not None and request.version != before.version:
        raise SlotError(
            "memory",
            "conflict",
            f"The memory {before.id} has changed: it has version {before.version}, not {request.version}",
            hint="Read it again, and change what it is now",
        )
    after = _changed(before, request, context)
    if after.text == before.text:
        yield from ask(
            "UPDATE memory_entry SET namespace = ?, expires = ?, pinned = ?, updated = ?, version = ? WHERE id = ?",
            *(after.namespace, after.expires, int(after.pinned), after.updated, after.version, after.id),
        )
        if after.namespace != before.namespace:
            stamp = yield from next_stamp()
            yield Statement("UPDATE memory_vector SET stamp = ? WHERE entry = ?", (stamp, after.id), "sqlite")
    else:
        yield from write_memory(after)
    return after


def require_may_change(caller: SlotCaller) -> None:
    """Raises `memory.denied`."""
    if caller.session is not None:
        raise SlotError(
            "memory", "denied", "An agent cannot change a memory", hint="Store the corrected one, and forget the old"
        )


def require_may_forget(memory: Memory, caller: SlotCaller) -> None:
    """Raises `memory.denied`."""
    if caller.session is not None and (memory.pinned or memory.origin.kind in ("owner", "program")):
        raise SlotError(
            "memory",
            "denied",
            f"The memory {memory.id} is the user's, so an agent cannot forget it",
            hint="Ask the user to forget it",
        )


def _changed(before: Memory, request: UpdateMemory, context: CallContext) -> Memory:
    given = (request.text, request.namespace, request.expires, request.pinned)
    if all(one is None for one in given):
        raise invalid("Nothing to change is given")
    after = replace(before, updated=context.now, version=before.version + 1)
    if request.text is not None:
        check_memory_text(request.text)
        kind: OriginKind = "owner" if context.caller.is_owner else "program"
        after = replace(after, text=request.text, origin=replace(before.origin, kind=kind))
    if request.namespace is not None:
        check_namespace(request.namespace, context.caller)
        after = replace(after, namespace=request.namespace)
    if request.expires is not None:
        check_moment("expires", request.expires)
        after = replace(after, expires=request.expires or None)
    if request.pinned is not None:
        after = replace(after, pinned=request.pinned)
    return after


def forget_memory(request: ForgetMemory, context: CallContext) -> Steps[ForgottenMemory]:
    memory = yield from _lock(request.id, context)
    require_may_forget(memory, context.caller)
    yield from remove_memories([memory.id], context.now)
    return ForgottenMemory(memory.id, memory.namespace)


def _lock(id: str, context: CallContext) -> Steps[Memory]:
    """The memory, which nobody else changes until this call has ended."""
    check_id(id)
    yield Statement("SELECT id FROM memory_entry WHERE id = ? FOR UPDATE", (id,), "postgres")
    memory = yield from read_memory(id, context)
    if not may_reach(memory.namespace, context.caller):
        raise not_found(id)
    return memory


def require_may_pin(caller: SlotCaller) -> None:
    if not caller.is_owner:
        raise SlotError(
            "memory", "denied", "Only the owner can pin a memory", hint="freehold memory pin, or the page Memory"
        )
