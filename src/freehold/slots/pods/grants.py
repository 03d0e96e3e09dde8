"""Who may reach what, and who did: the calls of the pods slot that its tables answer."""

from collections.abc import Callable
from typing import Any, get_args

from freehold.slots.contract import CallContext, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.pods.checks import check_folder, invalid
from freehold.slots.pods.contract import (
    MAX_PAGE,
    AccessAct,
    AccessMode,
    AccessPage,
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
MAX_ACCESSES, MAX_REFUSALS = 100_000, 10_000
"""How many accesses are remembered, and how many that were refused: these do not push out what was read."""
SAME_SECONDS = 600.0
"""The same access by the same caller is remembered once in this time, with its last moment."""
PRUNE_EVERY = 256
"""Accesses after which those beyond the limits are forgotten."""


def grant_access(request: GrantAccess, context: CallContext) -> Steps[GrantList]:
    _require_owner(context)
    _check_agent(request.agent)
    if request.mode not in get_args(AccessMode):
        raise invalid(f"{request.mode[:40]!a} is not read or write")
    folder = check_folder(request.folder)
    yield from ask(
        "INSERT INTO pods_grant (agent, folder, mode, granted) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (agent, folder) DO UPDATE SET mode = excluded.mode, granted = excluded.granted",
        *(request.agent, folder, request.mode, context.now),
    )
    return (yield from _read_grants(request.agent))


def revoke_access(request: RevokeAccess, context: CallContext) -> Steps[GrantList]:
    _require_owner(context)
    folder = check_folder(request.folder)
    gone = yield from ask(
        "DELETE FROM pods_grant WHERE agent = ? AND folder = ? RETURNING agent", request.agent, folder
    )
    if not gone:
        raise SlotError("pods", "not-found", f"{request.agent[:80]!a} has no access to {folder or '/'!a}")
    return (yield from _read_grants(request.agent))


def list_grants(request: ListGrants, context: CallContext) -> Steps[GrantList]:
    """An agent sees its own."""
    wanted = request.agent if context.caller.session is None else context.caller.agent
    return (yield from _read_grants(wanted, nobody=context.caller.session is not None and wanted is None))


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
    """The most that these grants allow for a path."""
    modes = {one.mode for one in grants if path.startswith(one.folder)}
    return "write" if "write" in modes else "read" if modes else None


def _read_grants(agent: str | None, *, nobody: bool = False) -> Steps[GrantList]:
    if nobody:
        return GrantList(())
    sql = "SELECT agent, folder, mode, granted FROM pods_grant"
    rows = yield from (
        ask(f"{sql} ORDER BY agent, folder") if agent is None else ask(f"{sql} WHERE agent = ? ORDER BY folder", agent)
    )
    return GrantList(tuple(PodGrant(*row) for row in rows))


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
    ListGrants: list_grants,
    ListAccess: list_access,
}
