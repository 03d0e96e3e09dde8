"""The calls that change items. Each runs in one transaction, and each change is in the history of its item."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace

from freehold.slots.beads.checks import (
    check_id,
    check_kind,
    check_labels,
    check_needs,
    check_priority,
    check_text,
    check_title,
    invalid,
)
from freehold.slots.beads.contract import (
    AddNeed,
    Bead,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    ReleaseBead,
    RemoveNeed,
    ReopenBead,
    UpdateBead,
)
from freehold.slots.beads.cycles import refuse_cycle
from freehold.slots.beads.rows import NEEDS, not_found, read_bead
from freehold.slots.contract import CallContext, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.statement import Statement, Steps, ask, ask_one

GRAPH_LOCK = Statement("SELECT pg_advisory_xact_lock(7305809, 1)", only="postgres")
"""One change of dependencies at a time: two of them at once could make a cycle that neither sees."""

_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


def new_id() -> str:
    return "fh-" + "".join(secrets.choice(_LETTERS) for _ in range(7))


def create_bead(request: CreateBead, context: CallContext) -> Steps[Bead]:
    check_title(request.title)
    check_text("description", request.description)
    check_kind(request.kind)
    check_priority(request.priority)
    labels, needs, id = check_labels(request.labels), check_needs(request.needs), new_id()
    now, who = context.now, context.caller.name
    yield GRAPH_LOCK
    yield from ask(
        "INSERT INTO beads_item (id, title, description, kind, priority, status, parent, created, created_by, updated,"
        " version, search, extra) VALUES (?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, 1, ?, '{}')",
        *(id, request.title, request.description, request.kind, request.priority),
        *(request.parent, now, who, now, search_text(request.title, request.description)),
    )
    for label in labels:
        yield from ask("INSERT INTO beads_label (item, label) VALUES (?, ?)", id, label)
    for other in needs:
        yield from _require(other)
        yield from ask("INSERT INTO beads_link (item, other, kind) VALUES (?, ?, ?)", id, other, NEEDS)
    if request.parent is not None:
        yield from _require(request.parent)
    if needs and request.parent is not None:
        yield from refuse_cycle(id)
    yield from record_change(id, 1, context, "created", {"title": request.title})
    return (yield from read_bead(id))


def search_text(title: str, description: str) -> str:
    """What a search for a text looks at, in one case: the two databases disagree about letters beyond ASCII."""
    return f"{title}\n{description}".casefold()


def update_bead(request: UpdateBead, context: CallContext) -> Steps[Bead]:
    set_to = _checked_fields(request)
    if request.parent:
        yield GRAPH_LOCK
    version = yield from touch(request.id, context)
    if request.version is not None and version != request.version + 1:
        raise SlotError(
            "beads",
            "conflict",
            f"The item {request.id} has changed: it has version {version - 1}, not {request.version}",
            hint="Read it again, and change what it is now",
        )
    columns = {name: value for name, value in set_to.items() if name != "labels"}
    if columns:
        assignments = ", ".join(f"{name} = ?" for name in columns)
        yield from ask(f"UPDATE beads_item SET {assignments} WHERE id = ?", *columns.values(), request.id)  # noqa: S608 - known names
    if "title" in columns or "description" in columns:
        bead = yield from read_bead(request.id)
        search = search_text(bead.title, bead.description)
        yield from ask("UPDATE beads_item SET search = ? WHERE id = ?", search, request.id)
    if request.labels is not None:
        labels = check_labels(request.labels)
        yield from ask("DELETE FROM beads_label WHERE item = ?", request.id)
        for label in labels:
            yield from ask("INSERT INTO beads_label (item, label) VALUES (?, ?)", request.id, label)
    if request.parent:
        yield from _require(request.parent)
        yield from refuse_cycle(request.id)
    shown = {**columns, **({} if request.labels is None else {"labels": list(request.labels)})}
    yield from record_change(request.id, version, context, "updated", shown)
    return (yield from read_bead(request.id))


def _checked_fields(request: UpdateBead) -> dict[str, str | int | None]:
    """The columns to set, by name."""
    found: dict[str, str | int | None] = {}
    if request.title is not None:
        check_title(request.title)
        found["title"] = request.title
    if request.description is not None:
        check_text("description", request.description)
        found["description"] = request.description
    if request.kind is not None:
        check_kind(request.kind)
        found["kind"] = request.kind
    if request.priority is not None:
        check_priority(request.priority)
        found["priority"] = request.priority
    if request.parent is not None:
        if request.parent:
            check_id(request.parent)
        found["parent"] = request.parent or None
    if not found and request.labels is None:
        raise invalid("Nothing to change is given")
    return found


def claim_bead(request: ClaimBead, context: CallContext) -> Steps[Bead]:
    """One statement decides who gets the item, however many ask at once."""
    check_id(request.id)
    holder = context.caller
    if request.session is not None:
        if context.caller.realm is None:
            raise SlotError("beads", "denied", "Only the owner can set a session on an item")
        holder = SlotCaller(f"{context.caller.realm}session:{request.session}")
    taken = yield from ask_one(
        "UPDATE beads_item SET holder = ?, status = 'in_progress', updated = ?, version = version + 1"
        " WHERE id = ? AND holder IS NULL AND status = 'open' RETURNING version",
        holder.name,
        context.now,
        request.id,
    )
    bead = yield from read_bead(request.id)
    if taken is None:
        if bead.holder == holder.name:
            return bead
        raise _cannot_claim(bead)
    if bead.blocked:
        raise SlotError(
            "beads",
            "conflict",
            f"The item {bead.id} waits for another item: {', '.join(bead.needs) or bead.parent}",
            hint="Work on that item first, or remove the dependency",
        )
    session = holder.session
    if session is not None:
        yield from ask(
            "INSERT INTO beads_session (item, session, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            *(bead.id, session, context.now),
        )
        bead = replace(bead, sessions=(*(one for one in bead.sessions if one != session), session))
    yield from record_change(bead.id, taken[0], context, "claimed", {"holder": holder.name})
    return bead


def _cannot_claim(bead: Bead) -> SlotError:
    if bead.status == "closed":
        return SlotError("beads", "conflict", f"The item {bead.id} is closed", hint="Reopen it first")
    return SlotError(
        "beads",
        "claimed",
        f"The item {bead.id} is held by {bead.holder}",
        hint="Choose another item, or wait until it is released",
    )


def release_bead(request: ReleaseBead, context: CallContext) -> Steps[Bead]:
    version = yield from touch(request.id, context)
    bead = yield from read_bead(request.id)
    if bead.holder is None:
        raise SlotError("beads", "conflict", f"Nobody holds the item {bead.id}")
    _require_holder(bead, context)
    yield from ask("UPDATE beads_item SET holder = NULL, status = 'open' WHERE id = ?", bead.id)
    yield from record_change(bead.id, version, context, "released", {"holder": bead.holder})
    return replace(bead, holder=None, status="open")


def close_bead(request: CloseBead, context: CallContext) -> Steps[Bead]:
    check_text("reason", request.reason)
    check_text("evidence", request.evidence or "")
    if not request.reason.strip():
        raise invalid("reason is empty: say why the item is closed")
    version = yield from touch(request.id, context)
    bead = yield from read_bead(request.id)
    if bead.status == "closed":
        raise SlotError("beads", "conflict", f"The item {bead.id} is closed already")
    _require_holder(bead, context)
    if (bead.sessions or context.caller.session) and not (request.evidence or "").strip():
        raise invalid("evidence is missing: say what shows that the item is done, such as a test that passes")
    children = yield from ask("SELECT id FROM beads_item WHERE parent = ? AND status <> 'closed' ORDER BY id", bead.id)
    if children:
        open_ones = ", ".join(row[0] for row in children[:10])
        raise SlotError("beads", "conflict", f"The item {bead.id} has children that are not closed: {open_ones}")
    yield from ask(
        "UPDATE beads_item SET status = 'closed', holder = NULL, closed = ?, close_reason = ?, evidence = ? WHERE id = ?",
        *(context.now, request.reason, request.evidence, bead.id),
    )
    closing = {"reason": request.reason, "evidence": request.evidence, "holder": bead.holder}
    yield from record_change(bead.id, version, context, "closed", closing)
    return (yield from read_bead(bead.id))


def reopen_bead(request: ReopenBead, context: CallContext) -> Steps[Bead]:
    version = yield from touch(request.id, context)
    bead = yield from read_bead(request.id)
    if bead.status != "closed":
        raise SlotError("beads", "conflict", f"The item {bead.id} is not closed")
    yield from ask(
        "UPDATE beads_item SET status = 'open', closed = NULL, close_reason = NULL, evidence = NULL WHERE id = ?",
        bead.id,
    )
    yield from record_change(bead.id, version, context, "reopened", {"reason": bead.close_reason})
    return (yield from read_bead(bead.id))


def add_need(request: AddNeed, context: CallContext) -> Steps[Bead]:
    check_id(request.needs)
    yield GRAPH_LOCK
    before = yield from read_bead(request.id)
    if request.needs in before.needs:
        return before
    check_needs((*before.needs, request.needs))
    version = yield from touch(request.id, context)
    yield from _require(request.needs)
    yield from ask("INSERT INTO beads_link (item, other, kind) VALUES (?, ?, ?)", request.id, request.needs, NEEDS)
    yield from refuse_cycle(request.id)
    yield from record_change(request.id, version, context, "need_added", {"needs": request.needs})
    return (yield from read_bead(request.id))


def remove_need(request: RemoveNeed, context: CallContext) -> Steps[Bead]:
    yield GRAPH_LOCK
    before = yield from read_bead(request.id)
    if request.needs not in before.needs:
        return before
    version = yield from touch(request.id, context)
    yield from ask("DELETE FROM beads_link WHERE item = ? AND other = ? AND kind = ?", request.id, request.needs, NEEDS)
    yield from record_change(request.id, version, context, "need_removed", {"needs": request.needs})
    return (yield from read_bead(request.id))


def comment_bead(request: CommentBead, context: CallContext) -> Steps[Bead]:
    check_text("text", request.text)
    if not request.text.strip():
        raise invalid("The comment is empty")
    version = yield from touch(request.id, context)
    last = yield from ask_one("SELECT max(number) FROM beads_comment WHERE item = ?", request.id)
    number = 1 + ((last[0] if last else None) or 0)
    yield from ask(
        "INSERT INTO beads_comment (item, number, at, author, body) VALUES (?, ?, ?, ?, ?)",
        *(request.id, number, context.now, context.caller.name, request.text),
    )
    yield from record_change(request.id, version, context, "commented", {"number": number})
    return (yield from read_bead(request.id))


def touch(id: str, context: CallContext) -> Steps[int]:
    """Its next version. Also locks the item, so that the changes of two callers follow each other."""
    check_id(id)
    row = yield from ask_one(
        "UPDATE beads_item SET version = version + 1, updated = ? WHERE id = ? RETURNING version", context.now, id
    )
    if row is None:
        raise not_found(id)
    version: int = row[0]
    return version


def record_change(
    id: str, version: int, context: CallContext, action: str, fields: Mapping[str, object]
) -> Steps[None]:
    yield from ask(
        "INSERT INTO beads_change (item, version, at, who, action, fields) VALUES (?, ?, ?, ?, ?, ?)",
        *(id, version, context.now, context.caller.name, action, json.dumps(fields)),
    )


def _require(id: str) -> Steps[None]:
    """Raises `beads.not-found` unless the item exists."""
    check_id(id)
    if (yield from ask_one("SELECT 1 FROM beads_item WHERE id = ?", id)) is None:
        raise not_found(id)


def _require_holder(bead: Bead, context: CallContext) -> None:
    if bead.holder in (None, context.caller.name):
        return
    if context.caller.realm is None or not bead.holder.startswith(context.caller.realm):
        raise SlotError(
            "beads",
            "denied",
            f"The item {bead.id} is held by {bead.holder}",
            hint="Only its holder and the owner can do this",
        )
