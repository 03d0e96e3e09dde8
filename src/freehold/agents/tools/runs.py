"""Host tools of the orchestrator: an agent lets others work for it, each in a computer and a copy of its own."""

import asyncio
from typing import Any

from freehold.agents.sessions.permission_request import PermissionRequest, make_text_request
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.server import PermissionsOf
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.slots import Slot, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.contract import (
    MAX_FOLDER,
    PERMISSION_WORDS,
    PERMISSIONS,
    UNFINISHED,
    GetChanges,
    ListRuns,
    ReadRun,
    Run,
    RunChanges,
    RunPermission,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.permissions import OF_SESSIONS, limit_permissions
from freehold.slots.orchestrator.store import check_spawn

MAX_TASKS = 5
MAX_TASK = 8_000
MAX_WAITED = 50
MAX_SHOWN = 60_000
OLDER = "it can hold what you have deleted since."
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 40, "description": "The id of the run."}


def make_run_tools(slot: Slot, permissions_of: PermissionsOf = lambda _session: None) -> list[HostTool]:
    """The tools of the orchestrator slot; none when it is off. `permissions_of` tells what the session of a run may do."""
    if slot.status.state == "off":
        return []
    spawn = _spawn_tool(slot, permissions_of)
    tools = [spawn, _list_tool(slot), _wait_tool(slot), _changes_tool(slot), *_end_tools(slot)]
    return [one.limited("runs", reads=one.name in ("runs_list", "runs_wait", "runs_changes")) for one in tools]


async def _call(slot: Slot, caller: ToolCaller, request: SlotCall[Any]) -> Any:
    return await slot.call(request, SlotCaller(f"session:{caller.session}"))


def _spawn_tool(slot: Slot, permissions_of: PermissionsOf) -> HostTool:
    is_far = slot.implementation != "local"

    async def spawn(caller: ToolCaller, given: Json) -> str:
        folder, budget, entry = given.get("folder"), given.get("budget_cents"), given.get("entry")
        permissions = _choose_permissions(given, permissions_of(caller.session), is_far=is_far)
        price = None if budget is None else budget / 100
        requests = [
            SpawnRun(task, given.get("agent"), None, None, folder, price, permissions, entry=entry)
            for task in given["tasks"]
        ]
        for request in requests:
            check_spawn(request)
        shown = "\n\n".join(f"{number}. {task}" for number, task in enumerate(given["tasks"], 1))
        title = f"Let {len(given['tasks'])} agents work in parallel"
        words = f"{_tell_spawn(given, permissions, is_far=is_far)}\n\n{shown}"
        scope = "orchestrator" if entry is None else "orchestrator history"
        await ask_permission(caller, make_text_request("host", title, words, scope=scope))
        return "\n".join([_line(await _call(slot, caller, request)) for request in requests])

    properties: dict[str, Json] = {
        "tasks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": MAX_TASK},
            "maxItems": MAX_TASKS,
            "description": "One prompt for each agent. Say everything it needs to know: it does not see this conversation.",
        },
        "folder": {
            "type": "string",
            "maxLength": MAX_FOLDER,
            "description": "The folder of /workspace of which each gets a copy, such as site. Default: an empty one.",
        },
        "entry": {
            "type": "integer",
            "minimum": 1,
            "description": "Copy the folder as it was right after this entry of history_log. Default: as it is now.",
        },
        "agent": {"type": "string", "maxLength": 100, "description": "Default: the user's default agent."},
        "budget_cents": {"type": "integer", "minimum": 1, "maximum": 100_000, "description": "What each may cost."},
        "permissions": {
            "type": "array",
            "items": {"type": "string", "maxLength": 20},
            "maxItems": len(PERMISSIONS),
            "description": f"What each may do, some of {', '.join(PERMISSIONS)}. Default: what you may do yourself.",
        },
    }
    words = "Let up to five other agents work in parallel, each in a computer and a copy of its own. The user is asked first."
    return HostTool("runs_spawn", words, properties, ("tasks",), spawn)


def _choose_permissions(given: Json, own: frozenset[str] | None, *, is_far: bool) -> tuple[RunPermission, ...]:
    """What each run may do: what was asked for, and never more than who asks. Raises `orchestrator.denied`."""
    most = OF_SESSIONS if is_far else PERMISSIONS
    wanted = given.get("permissions")
    request = SpawnRun("", permissions=None if wanted is None else tuple(wanted), entry=given.get("entry"))
    return limit_permissions(request, tuple(one for one in most if own is None or one in own))


def _tell_permissions(permissions: tuple[RunPermission, ...]) -> str:
    may = "; ".join(PERMISSION_WORDS[one] for one in permissions) or "nothing of this"
    not_ = "; ".join(words for one, words in PERMISSION_WORDS.items() if one not in permissions)
    return f"Besides working in its computer, each may: {may}.\n" + (f"Each may NOT: {not_}.\n" if not_ else "")


def _tell_spawn(given: Json, permissions: tuple[RunPermission, ...], *, is_far: bool) -> str:
    """What the owner allows, besides the tasks themselves."""
    folder, budget, agent, entry = (given.get(name) for name in ("folder", "budget_cents", "agent", "entry"))
    name = "the default agent" if agent is None else f"the agent {agent}"
    reach = (
        "They work at another Freehold, which shows them nothing that it remembers, owes or keeps."
        if is_far
        else f"Each acts as {name}. Of pods and memories it reaches what is granted both to it and to this agent."
    )
    facts = [
        f"Agent: {agent or 'the default'}.",
        f"Each works in {'an empty folder' if folder is None else f'a copy of {folder}'}.",
        *([] if entry is None else [f"THE COPY IS OF AN OLDER STATE, entry {entry}: {OLDER}"]),
        reach,
        "THERE IS NO BUDGET: each may cost as much as the run above it, if any, has left."
        if budget is None
        else f"Each may cost {budget / 100:.2f}.",
        *([] if "ask" in permissions else ["What they ask is answered with no."]),
    ]
    return f"{' '.join(facts)}\n{_tell_permissions(permissions)}".rstrip()


def _list_tool(slot: Slot) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        page = await _call(slot, caller, ListRuns())
        rows = [*map(_line, page.runs), f"All of your runs have cost {page.cost:.4f} so far."]
        return "\n".join(rows) if page.runs else "You have no runs."

    return HostTool("runs_list", "List the runs that you have begun, the newest first.", {}, (), show)


def _wait_tool(slot: Slot) -> HostTool:
    async def wait(caller: ToolCaller, given: Json) -> str:
        end = asyncio.get_running_loop().time() + given.get("seconds", 30)
        after, words = given.get("after", 0), list[str]()
        while True:
            left = end - asyncio.get_running_loop().time()
            found = await _call(slot, caller, ReadRun(given["id"], after, 100, min(5.0, max(0.0, left))))
            after = found.cursor
            words += [str(one.data.get("text", ""))[:4000] for one in found.events if one.kind == "message"]
            if found.run.state not in UNFINISHED or left <= 0:
                said = "\n\n".join(word for word in words if word)
                return f"{_line(found.run)}\ncursor: {after}\n\n{said}"[:MAX_SHOWN]

    properties: dict[str, Json] = {
        "id": _ID,
        "seconds": {"type": "integer", "minimum": 0, "maximum": MAX_WAITED, "description": "Default: 30."},
        "after": {"type": "integer", "minimum": 0, "description": "The cursor of an earlier answer."},
    }
    return HostTool("runs_wait", "Wait for a run, and read what its agent says.", properties, ("id",), wait)


def _changes_tool(slot: Slot) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        return _describe(await _call(slot, caller, GetChanges(given["id"])))

    return HostTool("runs_changes", "Show what a run has changed in its copy.", {"id": _ID}, ("id",), show)


def _end_tools(slot: Slot) -> list[HostTool]:
    async def merge(caller: ToolCaller, given: Json) -> str:
        changes = await _call(slot, caller, GetChanges(given["id"]))
        # Of a run that works on, nothing is shown, and it could finish while the owner reads.
        if changes.run.state in UNFINISHED or changes.run.outcome != "pending":
            word = "has not finished" if changes.run.state in UNFINISHED else "has no changes that wait"
            raise SlotError("orchestrator", "conflict", f"The run {changes.run.id} {word}")
        words = f"{_tell_hidden(changes)}{_tell_special(changes)}{_describe(changes)}"
        await ask_permission(caller, _ask_merge(changes, words))
        return _line(await _call(slot, caller, TakeChanges(given["id"], "merge")))

    async def drop(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, TakeChanges(given["id"], "drop")))

    async def stop(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, TerminateRun(given["id"])))

    given = {"id": _ID}
    words = "Merge what a finished run has changed into /workspace. The user is asked first."
    return [
        HostTool("runs_merge", words, given, ("id",), merge),
        HostTool("runs_drop", "Throw away what a finished run has changed.", given, ("id",), drop),
        HostTool("runs_stop", "End a run.", given, ("id",), stop),
    ]


def _ask_merge(changes: RunChanges, words: str) -> PermissionRequest:
    return make_text_request("host", f"Merge the changes of: {changes.run.title}", words, scope="files")


def _line(run: Run) -> str:
    changes = f"+{run.added} ~{run.changed} -{run.removed} {run.outcome}"
    error = f"  {run.error}" if run.error else ""
    return f"{run.id}  {run.state.replace('_', ' ')}  {run.agent}  {changes}  {run.title}{error}"


def _describe(found: RunChanges) -> str:
    text = _write_changes(found)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n… (cut off)"


def _write_changes(found: RunChanges) -> str:
    parts = [_line(found.run)]
    for one in found.files:
        marks = (*one.traits, *(["others have changed it too"] if one.conflict else []))
        parts.append(f"{one.kind} {one.path} ({one.size} bytes){''.join(f'  [{mark}]' for mark in marks)}")
        if one.diff:
            parts.append(one.diff)
    return "\n".join(parts)


def _tell_special(found: RunChanges) -> str:
    """What a question about these changes says first: files that are more than text."""
    special = [f"{one.path}: {', '.join(one.traits)}" for one in found.files if one.traits]
    return "LOOK AT THESE FIRST:\n" + "\n".join(special) + "\n\n" if special else ""


def _tell_hidden(found: RunChanges) -> str:
    """What a question about these changes begins with when it cannot show all of them."""
    run = found.run
    all_ = max(found.total, run.added + run.changed + run.removed)
    without = sum(one.diff is None and one.kind != "removed" for one in found.files)
    facts = [
        *([f"{all_ - len(found.files)} of {all_} files are not listed"] if all_ > len(found.files) else []),
        *([f"the content of {without} files is not shown"] if without else []),
        *(["the rest is cut off"] if len(_write_changes(found)) > MAX_SHOWN else []),
    ]
    return f"NOT EVERYTHING IS SHOWN HERE: {'; '.join(facts)}. Look at the run {run.id} first.\n\n" if facts else ""
