"""The tools themselves. What reads tells at once; what acts asks first, whatever the agent thinks."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from freehold.agents.approvals import Question
from freehold.agents.tools.tool import Caller, Json, Tool
from freehold.agents.visible import make_visible
from freehold.egress.policy import parse_pattern
from freehold.egress.questions import Questions
from freehold.egress.service import Egress
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

MAX_LISTED = 100
MAX_SEARCHED = 2_000
MAX_CHOICES = 12
Allowed = Literal["once", "session", "always"]
OPEN_KINDS = ("history.", "computer.", "service.", "egress.")
"""Events of these kinds are about the computer; of all others a session sees only its own."""

_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": "How many at most."}


@dataclass(frozen=True)
class Surroundings:
    """What the tools use, named as narrowly as they use it."""

    timeline: Timeline
    keeper: Callable[[str, dict[str, Any]], Awaitable[Any]]
    egress: Callable[[], Egress]
    ports: Callable[[], Awaitable[Mapping[int, str | None]]]
    """What listens inside, by port, with the name of its program where that is known."""
    preview: Callable[[int], str | None]
    """Where the user looks at a port, without leave to do so; None for a port that is not shown."""


def make_kit(house: Surroundings) -> list[Tool]:
    text = {"type": "string", "maxLength": 1000}
    return [
        Tool(
            "history_log",
            "List the states that the user's files have been in, the newest first.",
            {"limit": _LIMIT, "path": {**text, "description": "Only those that changed this path."}},
            (),
            lambda caller, given: _log(house, given),
        ),
        Tool(
            "history_undo",
            "Take back a change to the user's files. The user is asked first.",
            {
                "entry": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Its number in the log; the last if not given.",
                }
            },
            (),
            lambda caller, given: _undo(house, caller, given),
        ),
        Tool(
            "timeline_search",
            "Search what happened in this computer and in this conversation, the newest last.",
            {"query": {**text, "description": "Words that the event holds."}, "limit": _LIMIT},
            (),
            lambda caller, given: _search(house, caller, given),
        ),
        Tool(
            "ask_owner",
            "Ask the user a question and wait for the answer: yes or no, one of some choices, or words of their own.",
            {
                "question": {
                    **text,
                    "minLength": 1,
                    "maxLength": 4000,
                    "description": "The question, complete in itself.",
                },
                "choices": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 200},
                    "maxItems": MAX_CHOICES,
                    "description": "Answers to choose from.",
                },
                "free_text": {"type": "boolean", "description": "Whether the user may answer in words of their own."},
            },
            ("question",),
            lambda caller, given: _ask(caller, given),
        ),
        Tool(
            "request_egress",
            "Ask the user to let this computer talk to a host on the network.",
            {
                "host": {**text, "description": "A host name, such as example.org."},
                "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "443 if not given."},
                "why": {**text, "description": "What it is needed for."},
            },
            ("host", "why"),
            lambda caller, given: _request(house, caller, given),
        ),
        Tool(
            "preview_address",
            "Tell where the user sees what this computer serves on a port, and whether anything listens there.",
            {
                "port": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 65535,
                    "description": "Every port that something listens on, if not given.",
                }
            },
            (),
            lambda caller, given: _preview(house, given),
        ),
    ]


async def _log(house: Surroundings, given: Json) -> str:
    asked = {"limit": given.get("limit", 20), **({"path": given["path"]} if "path" in given else {})}
    found = await house.keeper("history.log", asked)
    rows = [
        f"{one['id']}  {datetime.fromtimestamp(one['at'], UTC):%Y-%m-%d %H:%M}  {one['kind']}  "
        f"+{one['added']} ~{one['changed']} -{one['removed']}  {one['why'][:200]}"
        for one in found["entries"]
    ]
    return "\n".join(rows) or "There is nothing yet."


async def _undo(house: Surroundings, caller: Caller, given: Json) -> str:
    asked = {**given, "who": {"by": "agent", "session": caller.session}}
    plan = await house.keeper("history.undo", {**asked, "dry_run": True})
    shown = json.dumps(plan, indent=1, ensure_ascii=False)
    title = f"Undo entry {given['entry']}" if "entry" in given else "Undo the last change to the files"
    await _permitted(caller, "other", title, {"input": make_visible(shown)[:20_000]}, ())
    # What is taken back is what was shown.
    if await house.keeper("history.undo", {**asked, "dry_run": True}) != plan:
        raise FreeholdError("tool.changed.conflict", "The files have changed since the user was asked")
    await house.keeper("history.undo", asked)
    return "It was taken back."


async def _search(house: Surroundings, caller: Caller, given: Json) -> str:
    events = await asyncio.to_thread(house.timeline.tail, MAX_SEARCHED)
    query = given.get("query", "").lower()
    rows = []
    for event in events:
        if not event.kind.startswith(OPEN_KINDS) and event.data.get("session") != caller.session:
            continue
        line = f"{event.at} {event.kind} {json.dumps(dict(event.data), ensure_ascii=False)[:500]}"
        if query in line.lower():
            rows.append(line)
    return "\n".join(rows[-given.get("limit", 20) :]) or "Nothing was found."


async def _ask(caller: Caller, given: Json) -> str:
    question = make_visible(given["question"].strip())
    if not question:
        raise FreeholdError("tool.wrong-arguments", "ask_owner: there is no question")
    details: Json = {
        "kind": "question",
        "input": question,
        "options": list(dict.fromkeys(make_visible(one.strip(), lines=False) for one in given.get("choices", []))),
        "free_text": given.get("free_text", False),
    }
    reply = await caller.ask(_question("other", question.splitlines()[0][:300], details, ()))
    if reply is None:
        raise FreeholdError("tool.no-answer", "The user has not answered")
    said = f": {reply.note}" if reply.note else "."
    if reply.answer == "reject":
        # A failure, so that `freehold ask-owner … && act` in a shell does not act.
        raise FreeholdError("tool.no", f"The user says no{said}")
    return reply.note if reply.note and (details["options"] or details["free_text"]) else f"The user says yes{said}"


async def _request(house: Surroundings, caller: Caller, given: Json) -> str:
    port = given.get("port", 443)
    pattern = parse_pattern(f"{given['host']}:{port}")
    if pattern.below:
        raise FreeholdError("tool.wrong-arguments", "request_egress: name one host, without a star")
    target, why = str(pattern), make_visible(given["why"])
    details = {"input": f"{target}\n{why}"}
    answer = await _permitted(caller, "fetch", f"Let the computer talk to {target}", details, (target,))

    def asked() -> int | None:
        questions = Questions(house.timeline)
        questions.ask(pattern.host, port, f"session:{caller.session}")
        return next((one.id for one in questions.all() if str(one.pattern) == target), None)

    number = await asyncio.to_thread(asked)
    if number is None:
        raise FreeholdError("tool.egress.conflict", f"{target} is asked about together with others; the user has it")
    await house.egress().answer(number, answer, who=f"session:{caller.session}")
    return f"The user allowed {target}."


async def _preview(house: Surroundings, given: Json) -> str:
    listening = await house.ports()
    rows = []
    for port in [given["port"]] if "port" in given else sorted(listening):
        address = house.preview(port)
        if address is None:
            raise FreeholdError("tool.wrong-arguments", f"preview_address: port {port} is not shown to the user")
        state = f"{listening[port] or 'something'} listens there" if port in listening else "nothing listens there yet"
        rows.append(f"{port}  {address}  {state}")
    return "\n".join(rows) or "Nothing listens on any port yet."


async def _permitted(caller: Caller, kind: str, title: str, details: Json, subjects: tuple[str, ...]) -> Allowed:
    reply = await caller.ask(_question(kind, title, details, subjects))
    if reply is None or reply.answer == "reject":
        raise FreeholdError("tool.rejected.permission", "The user said no")
    return reply.answer


def _question(kind: str, title: str, details: Json, subjects: tuple[str, ...]) -> Question:
    frozen = json.dumps([kind, title, details], sort_keys=True)
    digest = hashlib.sha256(frozen.encode()).hexdigest()
    return Question(kind, make_visible(title, lines=False)[:500], details, subjects, digest)
