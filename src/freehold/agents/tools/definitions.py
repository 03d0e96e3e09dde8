"""The host tools. Those that only read answer at once; those that act ask the owner first."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from freehold.agents.sessions.permission_request import PermissionRequest, make_text_request
from freehold.agents.sessions.reach import Reach
from freehold.agents.threads import run_blocking
from freehold.agents.tools.code_runner import LANGUAGES, MAX_PACKAGES, CodeCall, CodeRunner
from freehold.agents.tools.tool import HostTool, Json, ToolAnswer, ToolCaller
from freehold.agents.visible_text import make_visible
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.egress.policy import parse_pattern
from freehold.egress.service import EgressService
from freehold.errors import FreeholdError
from freehold.history.calls import ListEntries, PlanUndo, RequestAuthor, UndoChanges
from freehold.history.model import EntryRecord
from freehold.keeper.calls import KeeperCaller
from freehold.strict_json import encode
from freehold.timeline import Timeline

MAX_LISTED = 100
MAX_SEARCHED = 2_000
MAX_CHOICES = 12
MAX_CODE = 100_000
OPEN_KINDS = ("history.", "computer.", "service.", "egress.")
"""Timeline events about the computer, which a session sees unless they belong to another one.

Of all other kinds it sees only its own events.
"""

OPEN_FOLDERS = ("workspace", "home", WORKSPACE, AGENT_HOME)
"""The folders of history that the computer has. Of others, such as personal documents, not even names are told."""

_AUTHORS = {"terminal": "a terminal", "ssh": "SSH", "owner": "the user", "unknown": "", "agent": "another conversation"}
_TEXT: Json = {"type": "string", "maxLength": 1000}
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": "How many at most."}
_PORT: Json = {"type": "integer", "minimum": 1, "maximum": 65535}


@dataclass(frozen=True)
class HostToolDependencies:
    """What the host tools need from the other rooms."""

    timeline: Timeline
    keeper: KeeperCaller
    egress: Callable[[], EgressService]
    ports: Callable[[], Awaitable[Mapping[int, str | None]]]
    """The ports on which programs listen inside, with the name of the program if it is known."""
    preview: Callable[[int], str | None]
    """The address of a port's preview, which gives no access by itself; None for a port without a preview."""
    computer_of: Callable[[str], Computer]
    """The computer in which a session works, and its code runs. Raises `computer.not-connected`."""


def make_host_tools(dependencies: HostToolDependencies) -> list[HostTool]:
    return [
        _make_history_log(dependencies).limited("history", reads=True),
        _make_history_undo(dependencies).limited("history", reads=False),
        _make_timeline_search(dependencies).limited("history", reads=True),
        _make_ask_owner().limited("ask", reads=False),
        _make_request_egress(dependencies).limited("network", reads=False),
        _make_preview_address(dependencies),
        _make_run_code(CodeRunner(dependencies.computer_of)),
    ]


def _make_history_log(dependencies: HostToolDependencies) -> HostTool:
    async def list_entries(caller: ToolCaller, given: Json) -> str:
        path = given.get("path")
        if path is not None and not _is_open(path):
            # Before history is asked: an answer would tell whether there is such a document.
            raise FreeholdError(
                "tool.closed-path.permission", "history_log: name a path that begins with workspace/ or home/"
            )
        found = await dependencies.keeper.call(ListEntries(path, given.get("limit", 20)))
        rows = [
            f"{one.id}  {datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M}  {one.kind}  "
            f"+{one.added} ~{one.changed} -{one.removed}  {_tell_reason(one, caller.session)}"
            for one in found.entries
        ]
        return "\n".join(rows) or "There are no entries yet."

    return HostTool(
        "history_log",
        "List the recorded states of the user's files, the newest first.",
        {"limit": _LIMIT, "path": {**_TEXT, "description": "Only entries that changed this path."}},
        (),
        list_entries,
    )


def _is_open(path: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in OPEN_FOLDERS)


def _without_closed(data: Mapping[str, object]) -> dict[str, object]:
    """The data of an event as a session may read it. Those of an undo name paths."""
    paths = data.get("unsettled")
    return {**data, "unsettled": [one for one in paths if _is_open(str(one))]} if isinstance(paths, list) else {**data}


def _tell_reason(entry: EntryRecord, session: str) -> str:
    """The prompt of a turn is told to its own session only: it may hold what the owner told another agent."""
    if entry.who.by == "unknown" and entry.who.session is None:
        return entry.why[:200]  # Freehold's own words
    if entry.who.session == session and entry.who.by == "agent":
        return entry.why[:200] if entry.kind == "turn" else "this conversation"
    return _AUTHORS[entry.who.by] if entry.who.session is None else "another conversation"


def _make_history_undo(dependencies: HostToolDependencies) -> HostTool:
    async def undo(caller: ToolCaller, given: Json) -> str:
        preview = PlanUndo(given.get("entry"))
        plan = await dependencies.keeper.call(preview)
        shown = json.dumps(encode(plan), indent=1, ensure_ascii=False)
        title = f"Undo entry {given['entry']}" if "entry" in given else "Undo the last change to the files"
        await ask_permission(caller, make_text_request("host", title, shown, scope="history"))
        # Exactly what was shown is undone, or nothing.
        if await dependencies.keeper.call(preview) != plan:
            raise FreeholdError("tool.changed.conflict", "The files have changed since the user was asked")
        who = RequestAuthor(by="agent", session=caller.session, via="session")
        await dependencies.keeper.call(UndoChanges(preview.entry, who=who))
        return "The change was undone."

    entry = {"type": "integer", "minimum": 1, "description": "Its number in the log. Default: the last entry."}
    return HostTool(
        "history_undo", "Undo a change to the user's files. The user is asked first.", {"entry": entry}, (), undo
    )


def _make_timeline_search(dependencies: HostToolDependencies) -> HostTool:
    async def search(caller: ToolCaller, given: Json) -> str:
        events = await run_blocking(dependencies.timeline.tail, MAX_SEARCHED)
        query = given.get("query", "").lower()
        rows = []
        for event in events:
            session = event.data.get("session")
            if session != caller.session and (session is not None or not event.kind.startswith(OPEN_KINDS)):
                continue
            line = f"{event.at} {event.kind} {json.dumps(_without_closed(event.data), ensure_ascii=False)[:500]}"
            if query in line.lower():
                rows.append(line)
        return "\n".join(rows[-given.get("limit", 20) :]) or "Nothing was found."

    return HostTool(
        "timeline_search",
        "Search what happened in this computer and in this conversation, the newest last.",
        {"query": {**_TEXT, "description": "Text that the event contains."}, "limit": _LIMIT},
        (),
        search,
    )


def _make_ask_owner() -> HostTool:
    choices = {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 200},
        "maxItems": MAX_CHOICES,
        "description": "Answers to choose from.",
    }
    return HostTool(
        "ask_owner",
        "Ask the user a question and wait for the answer: yes or no, one of some choices, or a text.",
        {
            "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "The complete question."},
            "choices": choices,
            "free_text": {"type": "boolean", "description": "Whether the user may answer with their own text."},
        },
        ("question",),
        _ask_owner,
    )


async def _ask_owner(caller: ToolCaller, given: Json) -> str:
    question = make_visible(given["question"].strip())
    if not question:
        raise FreeholdError("tool.wrong-arguments", "ask_owner: the question is empty")
    details: Json = {
        "kind": "question",
        "input": question,
        "options": list(dict.fromkeys(make_visible(one.strip(), lines=False) for one in given.get("choices", []))),
        "free_text": given.get("free_text", False),
    }
    reply = await caller.ask(make_text_request("other", question.splitlines()[0][:300], question, details=details))
    if reply is None:
        raise FreeholdError("tool.no-answer", "The user has not answered")
    note = f": {reply.note}" if reply.note else "."
    if reply.answer == "reject":
        # An error, so that `freehold ask-owner … && act` in a shell does not act.
        raise FreeholdError("tool.no", f"The user says no{note}")
    return reply.note if reply.note and (details["options"] or details["free_text"]) else f"The user says yes{note}"


def _make_request_egress(dependencies: HostToolDependencies) -> HostTool:
    async def request(caller: ToolCaller, given: Json) -> str:
        """The owner sees exactly what each answer allows. Only `always` reaches beyond this conversation."""
        pattern = parse_pattern(f"{given['host']}:{given.get('port', 443)}")
        if pattern.below:
            raise FreeholdError("tool.wrong-arguments", "request_egress: name one host, without a wildcard")
        target, egress = str(pattern), dependencies.egress()
        denied = egress.find_deny_rule(target, caller.session)
        if denied is not None:
            raise FreeholdError("tool.egress-denied.permission", f"The user's rule '{denied}' denies {target}")
        reaches = (
            f"Once: {target}, one connection of this conversation.",
            f"This conversation: {target}, for this conversation only.",
            f"Always: {target}, for every program in the computer.",
        )
        words = "\n".join((target, given["why"], "", *reaches))
        # Agents cannot give a tool of their own this kind: no rule for those answers this request.
        asked = make_text_request("host", f"Connect to {target}", words, (target,), scope="admin")
        reach = await ask_permission(caller, asked)
        who = f"session:{caller.session}"
        if reach == "always":
            await egress.add_rule("allow", target, who=who)
            return f"The user allowed {target} for every program in this computer."
        await egress.allow_session(caller.session, target, reach, who=who)
        if reach == "once":
            return f"The user allowed one connection to {target} from this conversation."
        return f"The user allowed {target} for this conversation only."

    return HostTool(
        "request_egress",
        "Ask the user to let this computer connect to a host on the network.",
        {
            "host": {**_TEXT, "description": "A host name, such as example.org."},
            "port": {**_PORT, "description": "Default: 443."},
            "why": {**_TEXT, "description": "What it is needed for."},
        },
        ("host", "why"),
        request,
    )


def _make_preview_address(dependencies: HostToolDependencies) -> HostTool:
    async def describe(caller: ToolCaller, given: Json) -> str:
        listening = await dependencies.ports()
        rows = []
        for port in [given["port"]] if "port" in given else sorted(listening):
            address = dependencies.preview(port)
            if address is None:
                raise FreeholdError("tool.wrong-arguments", f"preview_address: port {port} has no preview")
            program = listening[port] or "a program" if port in listening else "no program"
            rows.append(f"{port}  {address}  {program} listens there")
        return "\n".join(rows) or "No program listens on a port yet."

    return HostTool(
        "preview_address",
        "Tell where the user sees what this computer serves on a port, and whether a program listens there.",
        {"port": {**_PORT, "description": "Default: every port on which a program listens."}},
        (),
        describe,
    )


def _make_run_code(runner: CodeRunner) -> HostTool:
    async def run(caller: ToolCaller, given: Json) -> ToolAnswer:
        language = given.get("language", "python")
        if language not in LANGUAGES:
            raise FreeholdError("tool.wrong-arguments", f"run_code: the languages are {', '.join(LANGUAGES)}")
        packages = frozenset(given["packages"]) if "packages" in given else None
        return await runner.run(caller.session, CodeCall(language, given["code"], given.get("call"), packages))

    return HostTool(
        "run_code",
        "Run code in a sealed process and get its output, the value of its last expression, and its figures. Variables "
        "stay for the next call. It can read /workspace; it cannot write files, start programs or use the network.",
        {
            "code": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_CODE,
                "description": "The code. For wasm: a module in the text format, or its bytes in base64.",
            },
            "language": {**_TEXT, "description": f"One of {', '.join(LANGUAGES)}. Default: python."},
            "packages": {
                "type": "array",
                "maxItems": MAX_PACKAGES,
                "items": {**_TEXT, "minLength": 1},
                "description": "Prepared packages, below /opt/packages. Others than before begin with new variables.",
            },
            "call": {**_TEXT, "description": "For wasm: a function of the module, such as add(40, 2)."},
        },
        ("code",),
        run,
    )


async def ask_permission(caller: ToolCaller, request: PermissionRequest) -> Reach:
    """Raises `tool.rejected.permission`."""
    reply = await caller.ask(request)
    if reply is None or reply.answer == "reject":
        raise FreeholdError("tool.rejected.permission", "The user said no")
    return reply.answer
