"""Lists of items, a page at a time."""

import base64
import json

from freehold.slots.beads.checks import check_id, check_text, invalid
from freehold.slots.beads.contract import MAX_PAGE, MAX_PRIORITY, BeadPage, ListBeads
from freehold.slots.beads.rows import BLOCKED, read_beads
from freehold.slots.contract import CallContext
from freehold.slots.statement import Steps, Value, ask


def list_beads(request: ListBeads, _context: CallContext) -> Steps[BeadPage]:
    limit = check_limit(request.limit)
    where, parameters = _conditions(request)
    head = BLOCKED if request.ready else ""
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    # Only constant text is joined here; every value is a parameter.
    rows = yield from ask(
        f"{head} SELECT id, priority, created FROM beads_item{condition} ORDER BY priority, created, id LIMIT ?",  # noqa: S608
        *parameters,
        limit + 1,
    )
    beads = yield from read_beads([row[0] for row in rows[:limit]])
    return BeadPage(tuple(beads), _cursor(*rows[limit - 1]) if len(rows) > limit else None)


def check_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise invalid(f"limit is {limit}. It is 1 to {MAX_PAGE}")
    return limit


def _conditions(request: ListBeads) -> tuple[list[str], list[Value]]:
    where: list[str] = []
    parameters: list[Value] = []

    def add(condition: str, *values: Value) -> None:
        where.append(condition)
        parameters.extend(values)

    for name in ("label", "holder", "text"):
        check_text(name, getattr(request, name) or "")
    if request.status is not None:
        add("status = ?", request.status)
    if request.ready:
        add("status = 'open' AND id NOT IN (SELECT id FROM blocked)")
    if request.kind is not None:
        add("kind = ?", request.kind)
    if request.holder is not None:
        add("holder = ?", request.holder)
    if request.parent is not None:
        check_id(request.parent)
        add("parent = ?", request.parent)
    if request.label is not None:
        add("id IN (SELECT item FROM beads_label WHERE label = ?)", request.label)
    if request.text is not None:
        escaped = request.text.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        add("search LIKE ? ESCAPE '\\'", f"%{escaped}%")
    if request.cursor is not None:
        priority, created, id = _read_cursor(request.cursor)
        add("(priority, created, id) > (?, ?, ?)", priority, created, id)
    return where, parameters


def _cursor(id: str, priority: int, created: float) -> str:
    return base64.urlsafe_b64encode(json.dumps([priority, created, id]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, float, str]:
    try:
        priority, created, id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        found = min(int(priority), MAX_PRIORITY), float(created), str(id)
    except (ValueError, TypeError, OverflowError):
        raise invalid("The cursor is not one of a list of items") from None
    check_id(found[2])
    return found
