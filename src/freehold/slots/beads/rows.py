"""Reading items out of the tables of the beads slot."""

import json
from collections import defaultdict
from collections.abc import Sequence

from freehold.slots.beads.contract import Bead, BeadChange, BeadComment, BeadDetails
from freehold.slots.errors import SlotError
from freehold.slots.statement import Row, Steps, ask, places

NEEDS = "blocks"
"""The kind of a link that makes an item wait, as beads itself calls it."""

_COLUMNS = (
    "id, title, description, kind, priority, status, holder, parent, created, created_by, updated, closed,"
    " close_reason, evidence, version"
)


def not_found(id: str) -> SlotError:
    return SlotError("beads", "not-found", f"There is no item {id[:80]!a}", hint="freehold beads lists them")


def read_bead(id: str) -> Steps[Bead]:
    """Raises `beads.not-found`."""
    found = yield from read_beads([id])
    if not found:
        raise not_found(id)
    return found[0]


def read_beads(ids: Sequence[str]) -> Steps[list[Bead]]:
    """The items with these ids, in this order. Ids that do not exist are left out."""
    if not ids:
        return []
    wanted = places(ids)
    # Only constant text and question marks are joined here; every value is a parameter.
    rows = yield from ask(f"SELECT {_COLUMNS} FROM beads_item WHERE id IN {wanted}", *ids)  # noqa: S608
    parts = yield from ask(_PARTS.format(wanted), *ids, *ids, *ids, *ids)
    by_label, by_session = _group(parts, "label"), _group(parts, "session")
    by_need, by_relation, blocked = _group(parts, NEEDS), _group(parts, "related"), _group(parts, "blocked")
    found = {
        row[0]: Bead(
            id=row[0],
            title=row[1],
            description=row[2],
            kind=row[3],
            priority=row[4],
            status=row[5],
            holder=row[6],
            parent=row[7],
            labels=by_label[row[0]],
            needs=by_need[row[0]],
            related=by_relation[row[0]],
            sessions=by_session[row[0]],
            blocked=row[0] in blocked and row[5] != "closed",
            created=row[8],
            created_by=row[9],
            updated=row[10],
            closed=row[11],
            close_reason=row[12],
            evidence=row[13],
            version=row[14],
        )
        for row in rows
    }
    return [found[id] for id in ids if id in found]


def read_details(id: str) -> Steps[BeadDetails]:
    bead = yield from read_bead(id)
    children = yield from ask("SELECT id FROM beads_item WHERE parent = ? ORDER BY created, id", id)
    blocks = yield from ask("SELECT item FROM beads_link WHERE other = ? AND kind = ? ORDER BY item", id, NEEDS)
    return BeadDetails(
        bead,
        tuple(row[0] for row in children),
        tuple(row[0] for row in blocks),
        (yield from read_comments(id)),
        (yield from read_changes(id)),
    )


def read_comments(id: str) -> Steps[tuple[BeadComment, ...]]:
    rows = yield from ask("SELECT number, at, author, body FROM beads_comment WHERE item = ? ORDER BY number", id)
    return tuple(BeadComment(*row) for row in rows)


def read_changes(id: str) -> Steps[tuple[BeadChange, ...]]:
    rows = yield from ask(
        "SELECT version, at, who, action, fields FROM beads_change WHERE item = ? ORDER BY version", id
    )
    return tuple(BeadChange(row[0], row[1], row[2], row[3], json.loads(row[4])) for row in rows)


# Everything that belongs to items, in one statement: a kind, the item, and a value.
# An item is blocked when it, or one that it is part of, needs an item that is not closed.
_PARTS = """
    WITH RECURSIVE above(start, id) AS (
        SELECT id, id FROM beads_item WHERE id IN {0}
        UNION SELECT above.start, item.parent FROM above JOIN beads_item item ON item.id = above.id
            WHERE item.parent IS NOT NULL
    )
    SELECT 'label' AS part, item, label AS value, 0.0 AS place FROM beads_label WHERE item IN {0}
    UNION ALL SELECT CASE kind WHEN 'blocks' THEN 'blocks' ELSE 'related' END, item, other, 0.0 FROM beads_link
        WHERE item IN {0}
    UNION ALL SELECT 'session', item, session, at FROM beads_session WHERE item IN {0}
    UNION ALL SELECT 'blocked', above.start, above.start, 0.0 FROM above
        JOIN beads_link link ON link.item = above.id AND link.kind = 'blocks'
        JOIN beads_item needed ON needed.id = link.other WHERE needed.status <> 'closed'
    ORDER BY 4, 3
"""

BLOCKED = """
    WITH RECURSIVE blocked(id) AS (
        SELECT link.item FROM beads_link link JOIN beads_item needed ON needed.id = link.other
            WHERE link.kind = 'blocks' AND needed.status <> 'closed'
        UNION SELECT child.id FROM beads_item child JOIN blocked ON child.parent = blocked.id
    )
"""
"""All blocked items, as the head of a query."""


def _group(rows: Sequence[Row], part: str) -> defaultdict[str, tuple[str, ...]]:
    """The values of one part by item."""
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for kind, item, value, _place in rows:
        if kind == part:
            found[item] = (*found[item], value)
    return found
