"""Who may reach what, and who did: the calls of the pods slot that its tables answer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from freehold.slots.contract import CallContext, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.pods.checks import check_folder, invalid
from freehold.slots.pods.contract import (
    MAX_PAGE,
    AccessAct,
    AccessMode,
    AccessPage,
    EndGrants,
    GrantAccess,
    GrantList,
    ListAccess,
    ListGrants,
    PodAccess,
    PodGrant,
    RevokeAccess,
)
from freehold.slots.statement import Steps, ask
from freehold.timeline import Transaction

MAX_AGENT = 100
MAX_SESSION = 200
MAX_ACCESSES, MAX_REFUSALS = 100_000, 10_000
"""How many accesses are remembered, and how many that were refused: these do not push out what was read."""
SAME_SECONDS = 600.0
"""The same access by the same caller is remembered once in this time, with its last moment."""
PRUNE_EVERY = 256
"""Accesses after which those beyond the limits are forgotten."""
_SESSION_COLUMNS = "agent, folder, mode, granted, session, once"


def grant_access(request: GrantAccess, context: CallContext) -> Steps[GrantList]:
    _require_owner(context)
    _check_agent(request.agent)
    if request.mode not in get_args(AccessMode):
        raise invalid(f"{request.mode[:40]!a} is not read or write")
    folder = check_folder(request.folder)
    if request.session is not None:
        yield from _grant_session(request, request.session, folder, context)
        return (yield from _read_grants(request.agent))
    yield from ask(
        "INSERT INTO pods_grant (agent, folder, mode, granted) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (agent, folder) DO UPDATE SET mode = excluded.mode, granted = excluded.granted",
        *(request.agent, folder, request.mode, context.now),
    )
    return (yield from _read_grants(request.agent))


def _grant_session(request: GrantAccess, session: str, folder: str, context: CallContext) -> Steps[None]:
    if not 0 < len(session) <= MAX_SESSION or not session.isprintable():
        raise invalid(f"The id of a session has 1 to {MAX_SESSION} printable characters")
    given = (session, request.agent, folder)
    if not request.once:
        yield from ask(
            "DELETE FROM pods_session_grant WHERE session = ? AND agent = ? AND folder = ? AND once = 0", *given
        )
    yield from ask(
        "INSERT INTO pods_session_grant (session, agent, folder, mode, once, granted) VALUES (?, ?, ?, ?, ?, ?)",
        *(*given, request.mode, int(request.once), context.now),
    )


def end_grants(request: EndGrants, context: CallContext) -> Steps[GrantList]:
    _require_owner(context)
    gone = yield from ask(
        f"DELETE FROM pods_session_grant WHERE session = ? RETURNING {_SESSION_COLUMNS}",  # noqa: S608
        request.session,
    )
    if not gone:
        raise SlotError("pods", "not-found", f"The session {request.session[:80]!a} was granted nothing")
    return GrantList(tuple(_session_grant(row) for row in gone))


def revoke_access(request: RevokeAccess, context: CallContext) -> Steps[GrantList]:
    _require_owner(context)
    folder = check_folder(request.folder)
    gone = list[Any]()
    for table in ("pods_grant", "pods_session_grant"):
        gone += yield from ask(
            f"DELETE FROM {table} WHERE agent = ? AND folder = ? RETURNING agent",  # noqa: S608
            *(request.agent, folder),
        )
    if not gone:
        raise SlotError("pods", "not-found", f"{request.agent[:80]!a} has no access to {folder or '/'!a}")
    return (yield from _read_grants(request.agent))


def list_grants(request: ListGrants, context: CallContext) -> Steps[GrantList]:
    """An agent sees what it may reach: what is granted to it and to each agent for which it works, and its own."""
    caller = context.caller
    if caller.session is None:
        return (yield from _read_grants(request.agent))
    if caller.agent is None:
        return GrantList(())
    lasting = yield from _read_lasting(caller.agent)
    for agent in caller.above:
        if agent != caller.agent:
            lasting = _narrow(lasting, (yield from _read_lasting(agent)))
    own = yield from ask(
        f"SELECT {_SESSION_COLUMNS} FROM pods_session_grant WHERE session = ? ORDER BY number",  # noqa: S608
        caller.session,
    )
    return GrantList((*lasting, *(_session_grant(row) for row in own)))


def list_access(request: ListAccess, context: CallContext) -> Steps[AccessPage]:
    _require_owner(context)
    if not 1 <= request.limit <= MAX_PAGE:
        raise invalid(f"limit is {request.limit}; it must be between 1 and {MAX_PAGE}")
    where, values = ["1 = 1"], list[Any]()
    if request.agent is not None:
        where, values = [*where, "agent = ?"], [*values, request.agent]
    if request.folder is not None:
        folder = check_folder(request.folder)
        where, values = [*where, "substr(path, 1, ?) = ?"], [*values, len(folder), folder]
    if request.before is not None:
        where, values = [*where, "number < ?"], [*values, request.before]
    rows = yield from ask(
        f"SELECT number, at, who, agent, act, path FROM pods_access WHERE {' AND '.join(where)}"  # noqa: S608
        " ORDER BY number DESC LIMIT ?",
        *(*values, request.limit + 1),
    )
    found = tuple(PodAccess(*row) for row in rows[: request.limit])
    return AccessPage(found, found[-1].number if len(rows) > request.limit else None)


def find_mode(grants: tuple[PodGrant, ...], path: str) -> AccessMode | None:
    """The most that these lasting grants allow for a path."""
    modes = {one.mode for one in grants if one.session is None and path.startswith(one.folder)}
    return "write" if "write" in modes else "read" if modes else None


def use_session_grant(tx: Transaction, session: str, mode: AccessMode, path: str) -> bool:
    """Whether this conversation may do it. A grant for once is used up: of several calls at once, one has it."""
    rows = tx.execute(
        "SELECT number, folder, mode, once FROM pods_session_grant WHERE session = ? ORDER BY once, number", (session,)
    ).fetchall()
    for number, folder, granted, is_once in rows:
        if path.startswith(folder) and granted in ("write", mode):
            if is_once:
                tx.execute("DELETE FROM pods_session_grant WHERE number = ?", (number,))
            return True
    return False


def _narrow(grants: tuple[PodGrant, ...], others: tuple[PodGrant, ...]) -> tuple[PodGrant, ...]:
    """What both allow: the smaller folder and the smaller mode of each two that meet."""
    return tuple(
        replace(
            one,
            folder=max(one.folder, other.folder, key=len),
            mode="write" if one.mode == other.mode == "write" else "read",
        )
        for one in grants
        for other in others
        if one.folder.startswith(other.folder) or other.folder.startswith(one.folder)
    )


def _read_lasting(agent: str | None) -> Steps[tuple[PodGrant, ...]]:
    sql = "SELECT agent, folder, mode, granted FROM pods_grant"
    rows = yield from (
        ask(f"{sql} ORDER BY agent, folder") if agent is None else ask(f"{sql} WHERE agent = ? ORDER BY folder", agent)
    )
    return tuple(PodGrant(*row) for row in rows)


def _read_grants(agent: str | None) -> Steps[GrantList]:
    """Of one agent or of all, also in single conversations."""
    lasting = yield from _read_lasting(agent)
    sql = f"SELECT {_SESSION_COLUMNS} FROM pods_session_grant"  # noqa: S608
    rows = yield from (
        ask(f"{sql} ORDER BY number") if agent is None else ask(f"{sql} WHERE agent = ? ORDER BY number", agent)
    )
    return GrantList((*lasting, *(_session_grant(row) for row in rows)))


def _session_grant(row: tuple[Any, ...]) -> PodGrant:
    agent, folder, mode, granted, session, is_once = row
    return PodGrant(agent, folder, mode, granted, session, bool(is_once))


def _require_owner(context: CallContext) -> None:
    if context.caller.session is not None:
        raise SlotError("pods", "denied", "Only the owner sees and changes who may reach what")


def _check_agent(agent: str) -> None:
    if not 0 < len(agent) <= MAX_AGENT or not agent.isprintable():
        raise invalid(f"The name of an agent has 1 to {MAX_AGENT} printable characters")


def remember_access(tx: Transaction, caller: SlotCaller, act: AccessAct, path: str, now: float) -> None:
    """Bounded, however often and whatever an agent tries."""
    same = "who = ? AND path = ? AND act = ? AND at > ?"
    tx.execute(f"DELETE FROM pods_access WHERE {same}", (caller.name, path, act, now - SAME_SECONDS))  # noqa: S608
    added = tx.execute(
        "INSERT INTO pods_access (at, who, agent, act, path) VALUES (?, ?, ?, ?, ?)",
        (now, caller.name, caller.agent, act, path),
    )
    if (added.lastrowid or 0) % PRUNE_EVERY == 0:
        for kind, most in (("= 'refused'", MAX_REFUSALS), ("<> 'refused'", MAX_ACCESSES)):
            first = f"SELECT number FROM pods_access WHERE act {kind} ORDER BY number DESC LIMIT 1 OFFSET ?"  # noqa: S608
            tx.execute(f"DELETE FROM pods_access WHERE act {kind} AND number <= ({first})", (most,))  # noqa: S608


STEPS_OF_CALL: dict[type[SlotCall[Any]], Callable[[Any, CallContext], Steps[Any]]] = {
    GrantAccess: grant_access,
    RevokeAccess: revoke_access,
    EndGrants: end_grants,
    ListGrants: list_grants,
    ListAccess: list_access,
}
