"""Reading memories: one, a page at a time, and how many there are."""

import base64
import json

from freehold.slots.contract import CallContext
from freehold.slots.memory.checks import (
    check_id,
    check_namespace,
    check_page,
    check_reach,
    check_words,
    invalid,
    may_reach,
    not_found,
)
from freehold.slots.memory.contract import (
    MAX_QUERY,
    GetMemory,
    ListMemories,
    Memory,
    MemoryPage,
)
from freehold.slots.memory.rows import ALIVE, COLUMNS, memory_of, read_memory
from freehold.slots.statement import Steps, Value, ask


def get_memory(request: GetMemory, context: CallContext) -> Steps[Memory]:
    check_id(request.id)
    memory = yield from read_memory(request.id, context)
    if not may_reach(memory.namespace, context.caller):
        raise not_found(request.id)
    return memory


def list_memories(request: ListMemories, context: CallContext) -> Steps[MemoryPage]:
    limit = check_page(request.limit)
    where, parameters = _conditions(request, context)
    # Only constant text is joined here; every value is a parameter.
    rows = yield from ask(
        f"SELECT {COLUMNS} FROM memory_entry WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?",  # noqa: S608
        *parameters,
        limit + 1,
    )
    memories = [memory_of(row) for row in rows[:limit]]
    return MemoryPage(tuple(memories), _cursor(memories[-1]) if len(rows) > limit else None)


def _conditions(request: ListMemories, context: CallContext) -> tuple[list[str], list[Value]]:
    if request.namespace is not None:
        check_namespace(request.namespace, context.caller)
    names = () if request.namespace is None else (request.namespace,)
    reach, reached = check_reach(names, context.caller).condition
    where: list[str] = [reach, ALIVE]
    parameters: list[Value] = [*reached, context.now]
    if request.origin is not None:
        where.append("origin = ?")
        parameters.append(request.origin)
    if request.pinned is not None:
        where.append("pinned = ?")
        parameters.append(int(request.pinned))
    if request.text is not None:
        check_words("text", request.text, MAX_QUERY)
        escaped = request.text.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        where.append("search LIKE ? ESCAPE '\\'")
        parameters.append(f"%{escaped}%")
    if request.cursor is not None:
        where.append("(updated, id) < (?, ?)")
        parameters.extend(_read_cursor(request.cursor))
    return where, parameters


def _cursor(memory: Memory) -> str:
    return base64.urlsafe_b64encode(json.dumps([memory.updated, memory.id]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[float, str]:
    try:
        updated, id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        found = float(updated), str(id)
    except (ValueError, TypeError, OverflowError):
        raise invalid("The cursor is not one of a list of memories") from None
    check_id(found[1])
    return found
