"""Host tools for memory: remember, recall, forget. What an agent stores is never told as the user's word."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from freehold.agents.tools.tool import HostTool, Json, ToolAnswer, ToolCaller
from freehold.slots import Slot, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.memory.contract import (
    MAX_NOTE,
    MAX_QUERY,
    MAX_TEXT,
    SHARED,
    ForgetMemory,
    ListMemories,
    MemoryMatch,
    MemoryOrigin,
    OriginKind,
    SearchMemories,
    StoreMemory,
)
from freehold.slots.memory.introduction import MAX_PINNED, describe_memory, describe_pinned

MAX_RECALLED = 20
MAX_DAYS = 3650
WEAK = 0.35
"""Below this score a match is told as one that may not be about the question."""


@dataclass(frozen=True)
class SessionFacts:
    """What the host knows about a session that stores something.

    `read`: what its agent has read in this turn, whatever it says itself: a page, the output of a tool, or neither.
    `above`: the agents for which it works, if it is the session of a run.
    """

    agent: str
    turn: int | None
    read: OriginKind
    above: tuple[str, ...] = ()


FindFacts = Callable[[str], Awaitable[SessionFacts]]


def make_memory_tools(slot: Slot, find_facts: FindFacts) -> list[HostTool]:
    """The tools of the memory slot; none when it is off."""
    if slot.status.state == "off":
        return []
    tools = [_remember_tool(slot, find_facts), _recall_tool(slot, find_facts), _forget_tool(slot, find_facts)]
    return [one.limited("memory", reads=one.name == "recall") for one in tools]


async def introduce_session(slot: Slot, session: str, agent: str, above: tuple[str, ...] = ()) -> str:
    """What a new conversation begins with: the pinned memories that its agent may read. Empty without the slot."""
    if slot.status.state != "ok":
        return ""
    try:
        caller = SlotCaller(f"session:{session}", agent, above)
        page = await slot.call(ListMemories(pinned=True, limit=MAX_PINNED), caller)
    except SlotError:
        return ""
    return describe_pinned(page.memories)


async def _call(slot: Slot, caller: ToolCaller, facts: SessionFacts, request: SlotCall[Any]) -> Any:
    return await slot.call(request, SlotCaller(f"session:{caller.session}", facts.agent, facts.above))


def _namespace(given: Json, facts: SessionFacts) -> str:
    chosen: str = given.get("namespace", SHARED)
    return f"agent:{facts.agent}" if chosen == "own" else chosen


def _remember_tool(slot: Slot, find_facts: FindFacts) -> HostTool:
    async def remember(caller: ToolCaller, given: Json) -> str:
        facts = await find_facts(caller.session)
        days = given.get("days")
        request = StoreMemory(
            given["text"],
            _namespace(given, facts),
            MemoryOrigin(facts.read, caller.session, facts.turn, given.get("source")),
            None if days is None else time.time() + days * 86_400,
        )
        memory = await _call(slot, caller, facts, request)
        return f"Stored as {memory.id} in {memory.namespace}."

    properties: dict[str, Json] = {
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_TEXT,
            "description": "One fact in a sentence that is understood without this conversation.",
        },
        "namespace": {
            "type": "string",
            "minLength": 1,
            "maxLength": 70,
            "description": "shared (the default), own (only for agents like you), or project:NAME.",
        },
        "source": {
            "type": "string",
            "maxLength": MAX_NOTE,
            "description": "Where it is from, such as an address or a file.",
        },
        "days": {"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "description": "Forget it after so many days."},
    }
    words = "Remember something for later conversations. Store facts and preferences, never secrets."
    return HostTool("remember", words, properties, ("text",), remember)


def _recall_tool(slot: Slot, find_facts: FindFacts) -> HostTool:
    async def recall(caller: ToolCaller, given: Json) -> ToolAnswer:
        facts = await find_facts(caller.session)
        names = (_namespace(given, facts),) if "namespace" in given else ()
        found = await _call(slot, caller, facts, SearchMemories(given["question"], names, given.get("limit", 5)))
        lines = [_describe(match) for match in found.matches] or ["Nothing is remembered about this."]
        if found.by == "words":
            lines.append("(Only exact words could be compared now. Ask again with other words.)")
        from_web = any(match.memory.origin.kind == "web" for match in found.matches)
        return ToolAnswer("\n\n".join(lines), from_web=from_web)

    properties: dict[str, Json] = {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_QUERY,
            "description": "A question or some words; names and codes are found exactly.",
        },
        "namespace": {
            "type": "string",
            "minLength": 1,
            "maxLength": 70,
            "description": "Only in shared, own or project:NAME.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RECALLED, "description": "How many at most."},
    }
    words = "Search what was remembered in earlier conversations."
    return HostTool("recall", words, properties, ("question",), recall)


def _describe(match: MemoryMatch) -> str:
    told = describe_memory(match.memory)
    return f"(may not be about this) {told}" if match.score < WEAK else told


def _forget_tool(slot: Slot, find_facts: FindFacts) -> HostTool:
    async def forget(caller: ToolCaller, given: Json) -> str:
        facts = await find_facts(caller.session)
        done = await _call(slot, caller, facts, ForgetMemory(given["id"]))
        return f"Forgot {done.id}."

    id: Json = {"type": "string", "minLength": 1, "maxLength": 64, "description": "The id that recall shows."}
    words = "Forget a memory that is wrong or no longer needed. What is the user's stays."
    return HostTool("forget", words, {"id": id}, ("id",), forget)
