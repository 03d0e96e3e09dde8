"""Memories as JSON records, and back. A record has everything but the vectors, which are made again."""

from dataclasses import dataclass, replace

from freehold.slots.contract import CallContext, Record, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.memory.checks import (
    check_id,
    check_memory_text,
    check_moment,
    check_namespace,
    check_origin,
    check_page,
    check_words,
    invalid,
)
from freehold.slots.memory.contract import (
    MAX_RECORDS,
    SHARED,
    ExportMemories,
    ImportMemories,
    Memory,
    MemoryImport,
    MemoryOrigin,
    MemoryRecords,
)
from freehold.slots.memory.rows import COLUMNS, memory_of, write_memory
from freehold.slots.statement import Steps, ask, places
from freehold.strict_json import WrongShape, decode, encode

_OWNER = SlotCaller("owner")


@dataclass(frozen=True)
class _Record:
    """A line of an export. Only `id` and `text` must be given."""

    id: str
    text: str
    namespace: str = SHARED
    origin: MemoryOrigin | None = None
    created: float | None = None
    created_by: str | None = None
    updated: float | None = None
    expires: float | None = None
    pinned: bool = False
    used: int = 0
    last_used: float | None = None
    version: int = 1


def export_memories(request: ExportMemories, context: CallContext) -> Steps[MemoryRecords]:
    """Expired ones too, as long as they are there: a copy is whole."""
    _require_no_session(context)
    limit = check_page(request.limit)
    if request.cursor is not None:
        check_id(request.cursor)
    rows = yield from ask(
        f"SELECT {COLUMNS} FROM memory_entry WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608 - known names
        request.cursor or "",
        limit + 1,
    )
    memories = [memory_of(row) for row in rows[:limit]]
    return MemoryRecords(tuple(encode(memory) for memory in memories), memories[-1].id if len(rows) > limit else None)


def import_memories(request: ImportMemories, context: CallContext) -> Steps[MemoryImport]:
    _require_no_session(context)
    if len(request.records) > MAX_RECORDS:
        raise invalid(f"One import takes {MAX_RECORDS} records, not {len(request.records)}")
    memories = [_read_record(record, context) for record in request.records]
    ids = [memory.id for memory in memories]
    rows = yield from ask(f"SELECT {COLUMNS} FROM memory_entry WHERE id IN {places(ids)}", *ids)  # noqa: S608
    here = {row[0]: memory_of(row) for row in rows}
    created = replaced = kept = 0
    for memory in memories:
        old = here.get(memory.id)
        if old is not None and (old.version, old.updated, old.used) >= (memory.version, memory.updated, memory.used):
            kept += 1
            continue
        if old is not None and not context.caller.is_owner and old.created_by != context.caller.name:
            raise SlotError(
                "memory", "denied", f"The memory {memory.id} is not yours to replace", hint="Import it as the owner"
            )
        created, replaced = (created + 1, replaced) if old is None else (created, replaced + 1)
        yield from write_memory(memory)
        here[memory.id] = memory
    return MemoryImport(created, replaced, kept)


def _require_no_session(context: CallContext) -> None:
    if context.caller.session is not None:
        raise SlotError("memory", "denied", "An agent cannot export or import all memories")


def _read_record(record: Record, context: CallContext) -> Memory:
    """Raises `memory.invalid` with the name of the field."""
    name = str(record.get("id", "a record"))[:80]
    try:
        found = decode(_Record, record)
    except WrongShape as error:
        raise invalid(f"{name!a}: {error}") from None
    check_id(found.id)
    check_memory_text(found.text)
    check_namespace(found.namespace, _OWNER)
    origin = found.origin or MemoryOrigin("program")
    check_origin(origin)
    if origin.kind == "owner" and not context.caller.is_owner:
        origin = replace(origin, kind="program")
    # Only the owner brings back who wrote something.
    created_by = (found.created_by or context.caller.name) if context.caller.is_owner else context.caller.name
    check_words("created_by", created_by, 200)
    created = context.now if found.created is None else found.created
    updated = created if found.updated is None else found.updated
    for field, at in (
        ("created", created),
        ("updated", updated),
        ("expires", found.expires),
        ("last_used", found.last_used),
    ):
        if at is not None:
            check_moment(field, at)
    if not 1 <= found.version < 2**31 or not 0 <= found.used < 2**31:
        raise invalid(f"{name!a}: version or used is out of range")
    return Memory(
        found.id,
        found.namespace,
        found.text,
        origin,
        created,
        created_by,
        updated,
        found.expires,
        found.pinned and context.caller.is_owner,
        found.used,
        found.last_used,
        found.version,
    )
