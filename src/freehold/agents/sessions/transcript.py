"""What an agent's updates come to: deltas to pass on at once, and events to keep when something is finished.

Everything here is decoded with suspicion: whatever is of the wrong type is left out, and every text has an end.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.rpc import Json

MAX_TEXT = 512 * 1024
MAX_PART = 100_000
MAX_TOOLS = 2_000
MAX_PARTS = 50
MAX_RAW = 32 * 1024
KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
STATUSES = frozenset({"pending", "in_progress", "completed", "failed"})
_CHUNKS = {"agent_message_chunk": "message", "agent_thought_chunk": "thought"}

Kept = tuple[str, Json]
"""A kind of event and its data."""


@dataclass
class Tool:
    """One tool call as it stands, joined from all that was said of it."""

    id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    locations: list[str] = field(default_factory=list)
    content: list[Json] = field(default_factory=list)
    raw_input: Any = None

    def as_json(self) -> Json:
        shown: Json = {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "status": self.status,
            "locations": self.locations,
            "content": self.content,
        }
        if self.raw_input is not None:
            shown["raw_input"] = self.raw_input
        return shown

    def take(self, update: Json) -> bool:
        """Joins an update; says whether more than its contents changed."""
        before = (self.title, self.kind, self.status)
        if isinstance(update.get("title"), str):
            self.title = update["title"][:2000]
        if update.get("kind") in KINDS:
            self.kind = update["kind"]
        if update.get("status") in STATUSES:
            self.status = update["status"]
        if isinstance(update.get("locations"), list):
            places = [one.get("path") for one in update["locations"][:MAX_PARTS] if isinstance(one, dict)]
            self.locations = [place[:4096] for place in places if isinstance(place, str)]
        if isinstance(update.get("content"), list):
            self.content = [part for one in update["content"][:MAX_PARTS] if (part := read_content(one))]
        if update.get("rawInput") is not None:
            raw = update["rawInput"]
            self.raw_input = raw if len(json.dumps(raw)) <= MAX_RAW else {"cut": json.dumps(raw)[:MAX_RAW]}
        return before != (self.title, self.kind, self.status)


def read_content(one: object) -> Json | None:
    """A part of a tool call's contents as the owner's clients know it."""
    if not isinstance(one, dict):
        return None
    if one.get("type") == "diff" and isinstance(one.get("path"), str):
        old, new = one.get("oldText"), one.get("newText")
        return {
            "type": "diff",
            "path": one["path"][:4096],
            "old": old[:MAX_PART] if isinstance(old, str) else None,
            "new": new[:MAX_PART] if isinstance(new, str) else "",
        }
    if one.get("type") == "terminal" and isinstance(one.get("terminalId"), str):
        return {"type": "terminal", "id": one["terminalId"][:200]}
    inner = one.get("content")
    if one.get("type") == "content" and isinstance(inner, dict):
        return {"type": "text", "text": block_text(inner)[:MAX_PART]}
    return None


def block_text(block: Json) -> str:
    """The words of a content block; of what is no text, a mention."""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if isinstance(block.get("uri"), str):
        return f"[{block['uri'][:2000]}]"
    return f"[{str(block.get('type'))[:40]}]"


class Board:
    """Gathers between two pauses. `events` are to be committed and then published, `deltas` to be passed on."""

    def __init__(self) -> None:
        self.events: list[Kept] = []
        self.deltas: list[Json] = []
        self.tools: dict[str, Tool] = {}
        self.muted = False
        """While an agent tells again what we have kept already."""
        self._speaking: tuple[str, str] | None = None
        self._said: list[str] = []
        self._size = 0
        self._count = 0
        self._changed: dict[str, Tool] = {}
        self._commands: list[Json] = []

    def take(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if not isinstance(kind, str):
            return
        if kind in ("available_commands_update", "session_info_update"):
            self._tell(kind, update)
        elif self.muted:
            return
        elif kind in _CHUNKS:
            self._chunk(_CHUNKS[kind], update)
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        elif kind == "plan":
            self.finish()
            self.events.append(("plan", {"entries": _plan(update.get("entries"))}))
        elif kind not in ("user_message_chunk", "usage_update", "current_mode_update", "config_option_update"):
            # Newer than we are: kept as it came, for clients that know it.
            raw = json.dumps(update)
            self.events.append(("update", update if len(raw) <= MAX_RAW else {"sessionUpdate": kind[:80]}))

    def join(self, call: Json) -> Tool | None:
        """The tool call that a question is about, with what the question adds. None when it has no name."""
        name = call.get("toolCallId")
        if not isinstance(name, str) or not name:
            return None
        tool = self._known(name[:200])
        tool.take(call)
        return tool

    def finish(self) -> None:
        """What is being said is said: it becomes an event."""
        self._put_tools()
        if self._speaking is not None and self._said:
            kind, name = self._speaking
            text = "".join(self._said)
            data: Json = {"text": text, "id": name}
            if kind == "message":
                data["role"] = "agent"
            if self._size > MAX_TEXT:
                data["cut"] = True
            self.events.append((kind, data))
        self._speaking, self._said, self._size = None, [], 0

    def pause(self) -> None:
        """Tool calls that changed since the last pause become one event each."""
        self._put_tools()

    def take_events(self) -> list[Kept]:
        taken, self.events = self.events, []
        return taken

    def take_deltas(self) -> list[Json]:
        """One a message, however many pieces it came in; `at` is where in the message it belongs, in characters."""
        taken, self.deltas = self.deltas, []
        return taken

    def speaking(self) -> list[Json]:
        """What is being said and is no event yet, whole: for a client that comes in the middle of it."""
        if self._speaking is None or not self._said:
            return []
        kind, name = self._speaking
        return [{"kind": kind, "id": name, "at": 0, "text": "".join(self._said)}]

    def _chunk(self, kind: str, update: Json) -> None:
        content = update.get("content")
        if not isinstance(content, dict):
            return
        text = block_text(content)
        given = update.get("messageId")
        speaking = self._speaking
        if speaking is None or speaking[0] != kind or (isinstance(given, str) and given[:200] != speaking[1]):
            self.finish()
            self._count += 1
            speaking = self._speaking = (kind, given[:200] if isinstance(given, str) else f"{kind}-{self._count}")
        at = self._size
        if at <= MAX_TEXT:
            self._said.append(text[: MAX_TEXT + 1 - at])
        self._size += len(text)
        if self._size > MAX_TEXT:
            return
        last = self.deltas[-1] if self.deltas else None
        if last is not None and (last["kind"], last["id"], last["at"] + len(last["text"])) == (kind, speaking[1], at):
            last["text"] += text
        else:
            self.deltas.append({"kind": kind, "id": speaking[1], "at": at, "text": text})

    def _tool(self, update: Json) -> None:
        name = update.get("toolCallId")
        if not isinstance(name, str) or not name:
            return
        if self._speaking is not None:
            self.finish()
        tool = self._known(name[:200])
        if tool.take(update) and tool.status in ("completed", "failed"):
            # Its place is here, before whatever is said next.
            self._changed.pop(tool.id, None)
            self.events.append(("tool", tool.as_json()))
        else:
            self._changed[tool.id] = tool

    def _known(self, name: str) -> Tool:
        tool = self.tools.get(name)
        if tool is None:
            if len(self.tools) >= MAX_TOOLS:
                self.tools.pop(next(iter(self.tools)))
            tool = self.tools[name] = Tool(name)
        return tool

    def _put_tools(self) -> None:
        for tool in self._changed.values():
            self.events.append(("tool", tool.as_json()))
        self._changed.clear()

    def _tell(self, kind: str, update: Json) -> None:
        if kind == "session_info_update":
            if isinstance(update.get("title"), str) and update["title"].strip():
                self.events.append(("info", {"title": update["title"].strip()[:200]}))
            return
        listed = update.get("availableCommands")
        commands: list[Json] = []
        for one in listed[:200] if isinstance(listed, list) else []:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                words = one.get("description")
                commands.append({"name": one["name"][:100], "description": str(words or "")[:500]})
        if commands != self._commands:
            self._commands = commands
            self.events.append(("commands", {"commands": commands}))


def _plan(entries: object) -> list[Json]:
    plan: list[Json] = []
    for one in entries[:200] if isinstance(entries, list) else []:
        if isinstance(one, dict) and isinstance(one.get("content"), str):
            status, priority = str(one.get("status"))[:20], str(one.get("priority"))[:20]
            plan.append({"content": one["content"][:2000], "status": status, "priority": priority})
    return plan
