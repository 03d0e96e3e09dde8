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
    at, order = _order(request)
    # Only constant text is joined here; every value is a parameter.
    rows = yield from ask(
        f"{head} SELECT id, priority, {at} FROM beads_item{condition} ORDER BY {order} LIMIT ?",  # noqa: S608
        *parameters,
        limit + 1,
    )
    beads = yield from read_beads([row[0] for row in rows[:limit]])
    return BeadPage(tuple(beads), _cursor(*rows[limit - 1]) if len(rows) > limit else None)


def _order(request: ListBeads) -> tuple[str, str]:
    """The moment that a cursor has, and the order. Closed items: the last closed first."""
    if request.status == "closed":
        return "COALESCE(closed, updated)", "COALESCE(closed, updated) DESC, id DESC"
    return "created", "priority, created, id"


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
        priority, at, id = _read_cursor(request.cursor)
        if request.status == "closed":
            add("(COALESCE(closed, updated), id) < (?, ?)", at, id)
        else:
            add("(priority, created, id) > (?, ?, ?)", priority, at, id)
    return where, parameters


def _cursor(id: str, priority: int, at: float) -> str:
    return base64.urlsafe_b64encode(json.dumps([priority, at, id]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, float, str]:
    try:
        priority, at, id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        found = min(int(priority), MAX_PRIORITY), float(at), str(id)
    except (ValueError, TypeError, OverflowError):
        raise invalid("The cursor is not one of a list of items") from None
    check_id(found[2])
    return found
