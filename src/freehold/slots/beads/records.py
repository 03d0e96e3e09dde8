"""Items as records of beads' own JSON lines (`issues.jsonl`), and back.

A record has the fields that beads itself writes. What beads does not know (evidence, sessions, the history of an item) is
in the field `freehold`, and what beads knows and Freehold does not is kept and written out again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from freehold.slots.beads.actor_names import limit_names
from freehold.slots.beads.changes import GRAPH_LOCK, search_text
from freehold.slots.beads.checks import (
    check_id,
    check_kind,
    check_labels,
    check_priority,
    check_text,
    check_title,
    invalid,
)
from freehold.slots.beads.contract import (
    MAX_RECORDS,
    STATUSES,
    BeadChange,
    BeadComment,
    BeadImport,
    BeadRecords,
    ExportBeads,
    ImportBeads,
)
from freehold.slots.beads.cycles import refuse_cycle
from freehold.slots.beads.pages import check_limit
from freehold.slots.beads.rows import NEEDS, read_beads, read_changes, read_comments
from freehold.slots.contract import CallContext, Record
from freehold.slots.statement import Steps, ask, ask_one, places
from freehold.strict_json import WrongShape, decode, encode

PARENT = "parent-child"
_STATUS_OF = {"blocked": "open", "deferred": "open", "pinned": "open"}
"""States of beads that are not states here: whether an item is blocked follows from what it needs."""
_OWN = frozenset(
    [
        "id",
        "title",
        "description",
        "status",
        "priority",
        "issue_type",
        "assignee",
        "labels",
        "dependencies",
        "comments",
        "created_at",
        "created_by",
        "updated_at",
        "closed_at",
        "close_reason",
        "freehold",
    ]
)


@dataclass(frozen=True)
class _OwnFields:
    """The field `freehold` of a record. `times` are exact: beads' own fields have microseconds."""

    version: int = 1
    evidence: str | None = None
    sessions: tuple[str, ...] = ()
    created: float = 0.0
    updated: float = 0.0
    closed: float | None = None
    comments: tuple[BeadComment, ...] = ()
    history: tuple[BeadChange, ...] = ()


@dataclass(frozen=True)
class _Item:
    """A record that was read and checked."""

    id: str
    columns: dict[str, Any]
    labels: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    own: _OwnFields


def export_beads(request: ExportBeads, _context: CallContext) -> Steps[BeadRecords]:
    limit = check_limit(request.limit)
    if request.cursor is not None:
        check_id(request.cursor)
    rows = yield from ask(
        "SELECT id, extra FROM beads_item WHERE id > ? ORDER BY id LIMIT ?", request.cursor or "", limit + 1
    )
    extra = {row[0]: json.loads(row[1]) for row in rows[:limit]}
    records = []
    for bead in (yield from read_beads(list(extra))):
        links = yield from ask("SELECT other, kind FROM beads_link WHERE item = ? ORDER BY kind, other", bead.id)
        comments, history = (yield from read_comments(bead.id)), (yield from read_changes(bead.id))
        own = _OwnFields(
            bead.version, bead.evidence, bead.sessions, bead.created, bead.updated, bead.closed, comments, history
        )
        depends = [(bead.parent, PARENT)] if bead.parent is not None else []
        record: dict[str, object] = {
            **extra[bead.id],
            "id": bead.id,
            "title": bead.title,
            "description": bead.description,
            "status": bead.status,
            "priority": bead.priority,
            "issue_type": bead.kind,
            "labels": list(bead.labels),
            "created_at": _show(bead.created),
            "created_by": bead.created_by,
            "updated_at": _show(bead.updated),
            "dependencies": [
                {"issue_id": bead.id, "depends_on_id": other, "type": kind} for other, kind in [*depends, *links]
            ],
            "comments": [
                {
                    "id": one.number,
                    "issue_id": bead.id,
                    "author": one.author,
                    "text": one.text,
                    "created_at": _show(one.at),
                }
                for one in comments
            ],
            "freehold": encode(own),
        }
        given = {
            "assignee": bead.holder,
            "closed_at": None if bead.closed is None else _show(bead.closed),
            "close_reason": bead.close_reason,
        }
        records.append({**record, **{name: value for name, value in given.items() if value is not None}})
    return BeadRecords(tuple(records), rows[limit - 1][0] if len(rows) > limit else None)


def import_beads(request: ImportBeads, context: CallContext) -> Steps[BeadImport]:
    if len(request.records) > MAX_RECORDS:
        raise invalid(f"An import takes {MAX_RECORDS} records at once, not {len(request.records)}")
    records = limit_names(request.records, context.caller)
    items = [item for item in (read_record(record, context) for record in records) if item is not None]
    if len({item.id for item in items}) != len(items):
        raise invalid("Two records have the same id")
    yield GRAPH_LOCK
    created = replaced = kept = 0
    stored = []
    for item in items:
        found = yield from ask_one("SELECT updated FROM beads_item WHERE id = ?", item.id)
        if found is not None and found[0] >= item.columns["updated"]:
            kept += 1
            continue
        created, replaced = created + (found is None), replaced + (found is not None)
        yield from _store(item)
        stored.append(item)
    for item in stored:
        if item.columns["parent"] is not None or item.links:
            yield from refuse_cycle(item.id)
    return BeadImport(created, replaced, kept)


def _store(item: _Item) -> Steps[None]:
    for table in ("beads_label", "beads_link", "beads_comment", "beads_session", "beads_change"):
        yield from ask(f"DELETE FROM {table} WHERE item = ?", item.id)  # noqa: S608 - the names above
    yield from ask("DELETE FROM beads_item WHERE id = ?", item.id)
    columns = {"id": item.id, **item.columns}
    names, values = ", ".join(columns), list(columns.values())
    yield from ask(f"INSERT INTO beads_item ({names}) VALUES {places(values)}", *values)  # noqa: S608
    for label in item.labels:
        yield from ask("INSERT INTO beads_label (item, label) VALUES (?, ?)", item.id, label)
    for other, kind in item.links:
        yield from ask("INSERT INTO beads_link (item, other, kind) VALUES (?, ?, ?)", item.id, other, kind)
    for one in item.own.comments:
        yield from ask(
            "INSERT INTO beads_comment (item, number, at, author, body) VALUES (?, ?, ?, ?, ?)",
            *(item.id, one.number, one.at, one.author, one.text),
        )
    for place, session in enumerate(item.own.sessions):
        yield from ask("INSERT INTO beads_session (item, session, at) VALUES (?, ?, ?)", item.id, session, place)
    for change in item.own.history:
        yield from ask(
            "INSERT INTO beads_change (item, version, at, who, action, fields) VALUES (?, ?, ?, ?, ?, ?)",
            *(item.id, change.version, change.at, change.who, change.action, json.dumps(change.fields)),
        )


def read_record(record: Record, context: CallContext) -> _Item | None:
    """The item of a record; None for one that beads has deleted. Raises `beads.invalid` with the name of the field."""
    id, title = _text(record, "id"), _text(record, "title")
    status = _text(record, "status", "open")
    if status == "tombstone":
        return None
    check_id(id)
    check_title(title)
    status = _STATUS_OF.get(status, status)
    if status not in STATUSES:
        raise invalid(f"{id}: {status[:80]!a} is not a state of an item. The states are: {', '.join(STATUSES)}")
    own = _read_own(id, record, context)
    holder = _text(record, "assignee", "") or None
    if status == "in_progress" and holder is None:
        holder = "unknown"
    description, kind = _text(record, "description", ""), _text(record, "issue_type", "task")
    check_text("description", description)
    check_kind(kind)
    priority = record.get("priority", 2)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise invalid(f"{id}: priority is not a whole number")
    check_priority(priority)
    links = _read_links(id, record)
    columns: dict[str, Any] = {
        "title": title,
        "description": description,
        "kind": kind,
        "priority": priority,
        "status": status,
        "holder": holder if status == "in_progress" else None,
        "parent": next((other for other, link in links if link == PARENT), None),
        "created": own.created,
        "created_by": _text(record, "created_by", "import"),
        "updated": own.updated,
        "closed": own.closed if status == "closed" else None,
        "close_reason": _text(record, "close_reason", "") or None,
        "evidence": own.evidence,
        "version": own.version,
        "search": search_text(title, description),
        "extra": json.dumps({name: value for name, value in record.items() if name not in _OWN}, sort_keys=True),
    }
    for name, value in columns.items():
        if isinstance(value, str):
            check_text(name, value, 4 * 64 * 1024)
    labels = check_labels(_texts(id, record.get("labels") or []))
    return _Item(id, columns, labels, tuple(link for link in links if link[1] != PARENT), own)


def _read_own(id: str, record: Record, context: CallContext) -> _OwnFields:
    if "freehold" in record:
        try:
            own = decode(_OwnFields, record["freehold"])
        except WrongShape as error:
            raise invalid(f"{id}: freehold.{error}") from None
        if not 1 <= own.version < 2**31 or any(not 1 <= one.version < 2**31 for one in own.history):
            raise invalid(f"{id}: freehold.version is out of range")
        for text in (own.evidence or "", *own.sessions, *(one.text for one in own.comments)):
            check_text("freehold", text)
        return own
    comments = []
    for number, given in enumerate(_objects(id, record, "comments"), 1):
        text, author = _text(given, "text", ""), _text(given, "author", "") or "unknown"
        check_text("comment", text)
        check_text("author", author)
        comments.append(BeadComment(number, _moment(id, given, "created_at", context.now), author, text))
    created = _moment(id, record, "created_at", context.now)
    updated = _moment(id, record, "updated_at", created)
    return _OwnFields(
        version=1,
        created=created,
        updated=updated,
        closed=_moment(id, record, "closed_at", updated) if record.get("status") == "closed" else None,
        comments=tuple(comments),
        history=(BeadChange(1, context.now, context.caller.name, "imported", {}),),
    )


def _read_links(id: str, record: Record) -> list[tuple[str, str]]:
    found = set()
    for given in _objects(id, record, "dependencies"):
        other, kind = _text(given, "depends_on_id"), _text(given, "type", NEEDS)
        check_id(other)
        check_text("type", kind, 60)
        found.add((other, kind))
    return sorted(found)


def _objects(id: str, record: Record, name: str) -> list[Record]:
    given = record.get(name) or []
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        raise invalid(f"{id}: {name} is not a list of objects")
    return cast("list[Record]", list(given))


def _texts(id: str, given: object) -> list[str]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise invalid(f"{id}: labels is not a list of texts")
    return list(given)


def _text(record: Record, name: str, default: str | None = None) -> str:
    value = record.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise invalid(f"{str(record.get('id', 'a record'))[:80]!a}: {name} is not a text")
    return value


def _moment(id: str, record: Record, name: str, default: float) -> float:
    value = record.get(name)
    if value is None:
        return default
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise invalid(f"{id}: {name} is not a time: {str(value)[:80]!a}") from None


def _show(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
