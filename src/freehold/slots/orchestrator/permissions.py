"""What a run may do, and who may end it: never more than who begins it."""

from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.contract import PERMISSIONS, RunPermission, SpawnRun
from freehold.timeline import Timeline

OF_SESSIONS: tuple[RunPermission, ...] = ("ask", "network", "runs")
"""What a session may let a run at another Freehold do: it may itself reach none of the slots there."""


def find_permissions(timeline: Timeline, caller: SlotCaller) -> tuple[RunPermission, ...]:
    """What the caller may let others do: all, unless it is a run itself."""
    rows = timeline.query("SELECT permissions FROM orchestrator_run WHERE session = ?", (caller.session or "",))
    return tuple(one for one in PERMISSIONS if not rows or one in rows[0][0].split(","))


def limit_permissions(request: SpawnRun, own: tuple[RunPermission, ...]) -> tuple[RunPermission, ...]:
    """Those of a new run: at most those of who begins it. Raises `orchestrator.denied`."""
    if "runs" not in own:
        raise SlotError("orchestrator", "denied", "This run may not begin others")
    if request.entry is not None and "history" not in own:
        raise SlotError(
            "orchestrator",
            "denied",
            "To begin a run from an older state, the permission history is needed: it can hold what was deleted since",
            hint="Leave entry out: the run then begins with the files as they are now",
        )
    wanted = own if request.permissions is None else request.permissions
    unknown = [one for one in wanted if one not in PERMISSIONS]
    if unknown:
        words = f"{unknown[0][:40]!a} is no permission. There are: {', '.join(PERMISSIONS)}"
        raise SlotError("orchestrator", "invalid", words)
    beyond = [one for one in wanted if one not in own]
    if beyond:
        words = f"{', '.join(beyond)}: a run may do no more than who begins it"
        raise SlotError("orchestrator", "denied", words, hint=f"It may give: {', '.join(own)}")
    return tuple(one for one in PERMISSIONS if one in wanted)


def check_control(id: str, began_by: str, caller: SlotCaller) -> None:
    """Whether a program may end this run or take its changes. Of a session, its own runs were looked for already."""
    if not (caller.is_owner or caller.is_admin or caller.session is not None or began_by == caller.name):
        raise SlotError(
            "orchestrator",
            "denied",
            f"{caller.name} did not begin the run {id}",
            hint="A token with the scope admin may end runs of others and take their changes",
        )
