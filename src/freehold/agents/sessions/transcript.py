"""Builds session events from an agent's updates: deltas to publish at once, and events to store when complete.

Agents are not trusted: values of the wrong type are ignored, and every text has a limit.
"""

import json
from dataclasses import dataclass

from freehold.agents.acp.json_rpc import AgentError, Json
from freehold.agents.sessions.rows import DraftEvent
from freehold.agents.sessions.tool_call import MAX_ID, MAX_RAW, ToolCall, read_block_text

MAX_TEXT = 512 * 1024
MAX_TOOL_CALLS = 2_000
MAX_KEPT = 64 * 1024 * 1024
"""Characters of all tool calls together. The oldest are dropped, except those that the owner is asked about."""
_CHUNKS = {"agent_message_chunk": "message", "agent_thought_chunk": "thought"}
_HANDLED_ELSEWHERE = ("user_message_chunk", "usage_update", "current_mode_update", "config_option_update")


@dataclass(frozen=True)
class OpenMessage:
    """A message that is not complete yet, from `at` on. `number` counts the messages of its agent, from 1."""

    number: int
    kind: str
    id: str
    at: int
    text: str


def make_message(kind: str, name: str, text: str) -> DraftEvent:
    """The event of a message or thought with this text. More than `MAX_TEXT` characters mean that it was cut."""
    data: Json = {"text": text, "id": name}
    if kind == "message":
        data["role"] = "agent"
    if len(text) > MAX_TEXT:
        data["cut"] = True
    return kind, data


class TranscriptBuilder:
    """Collects updates between two pauses. Store and publish what `pop_events` and `pop_deltas` return."""

    def __init__(self) -> None:
        self.tool_calls: dict[str, ToolCall] = {}
        self.muted = False
        """Set while an agent replays a transcript that is stored already."""
        self._events: list[DraftEvent] = []
        self._deltas: list[Json] = []
        self._open: tuple[str, str] | None = None
        """Kind and id of the message that is not complete yet."""
        self._text: list[str] = []
        self._size = 0
        self._count = 0
        self._changed: dict[str, ToolCall] = {}
        self._commands: list[Json] = []
        self._kept = 0

    def add_update(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if not isinstance(kind, str):
            return
        if kind == "available_commands_update":
            self._add_commands(update)
        elif kind == "session_info_update":
            self._add_title(update)
        elif self.muted:
            return
        elif kind in _CHUNKS:
            self._add_chunk(_CHUNKS[kind], update)
        elif kind in ("tool_call", "tool_call_update"):
            self._add_tool_update(update)
        elif kind == "plan":
            self.finish_message()
            self._events.append(("plan", {"entries": _read_plan(update.get("entries"))}))
        elif kind not in _HANDLED_ELSEWHERE:
            # A newer protocol: stored as it is, for clients that know it.
            raw = json.dumps(update)
            self._events.append(("update", update if len(raw) <= MAX_RAW else {"sessionUpdate": kind[:80]}))

    def join_tool_call(self, call: Json) -> ToolCall | None:
        """The tool call of a permission request, with what the request adds. None when it has no id."""
        name = call.get("toolCallId")
        if not isinstance(name, str) or not name:
            return None
        tool = self._find_tool_call(name[:MAX_ID])
        self._apply_update(tool, call, asks=True)
        return tool

    def finish_message(self) -> None:
        """Turns changed tool calls and the open message into events."""
        self.flush_tool_calls()
        if self._open is not None and self._text:
            self._events.append(make_message(*self._open, "".join(self._text)))
        self._open, self._text, self._size = None, [], 0

    def flush_tool_calls(self) -> None:
        """Turns each tool call that changed since the last time into one event."""
        for tool in self._changed.values():
            self._events.append(("tool", tool.as_json()))
        self._changed.clear()

    def pop_events(self) -> list[DraftEvent]:
        events, self._events = self._events, []
        return events

    def pop_deltas(self) -> list[Json]:
        """One delta a message. `at` is its position in the message, in characters."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def unfinished_messages(self) -> list[Json]:
        """The open message as one delta, for a client that connects in the middle of it."""
        message = self.open_message()
        return [] if message is None else [{"kind": message.kind, "id": message.id, "at": 0, "text": message.text}]

    def open_message(self, number: int = 0, at: int = 0) -> OpenMessage | None:
        """What the open message has after `at` characters if it has this number, else all of it. None for nothing."""
        at = at if number == self._count else 0
        wanted = min(self._size, MAX_TEXT + 1) - at
        if self._open is None or wanted <= 0:
            return None
        found: list[str] = []
        length = 0
        for text in reversed(self._text):  # it is asked again and again, and most of it was read before
            found.append(text)
            length += len(text)
            if length >= wanted:
                break
        return OpenMessage(self._count, *self._open, at, "".join(reversed(found))[-wanted:])

    def is_open(self, number: int) -> bool:
        """Whether this message is not complete yet. Any thread may ask: no event of it is stored before it is."""
        return self._open is not None and self._count == number

    @property
    def last_complete(self) -> int:
        """The number of the last message that is complete."""
        return self._count if self._open is None else self._count - 1

    def _add_chunk(self, kind: str, update: Json) -> None:
        content = update.get("content")
        if not isinstance(content, dict):
            return
        text = read_block_text(content)
        given = update.get("messageId")
        current = self._open
        if current is None or current[0] != kind or (isinstance(given, str) and given[:MAX_ID] != current[1]):
            self.finish_message()
            self._count += 1
            current = self._open = (kind, given[:MAX_ID] if isinstance(given, str) else f"{kind}-{self._count}")
        at = self._size
        if at <= MAX_TEXT:
            self._text.append(text[: MAX_TEXT + 1 - at])
        self._size += len(text)
        if self._size > MAX_TEXT:
            return
        last = self._deltas[-1] if self._deltas else None
        if last is not None and (last["kind"], last["id"], last["at"] + len(last["text"])) == (*current, at):
            last["text"] += text
        else:
            self._deltas.append({"kind": kind, "id": current[1], "at": at, "text": text})

    def _add_tool_update(self, update: Json) -> None:
        name = update.get("toolCallId")
        if not isinstance(name, str) or not name:
            return
        if self._open is not None:
            self.finish_message()
        tool = self._find_tool_call(name[:MAX_ID])
        if self._apply_update(tool, update) and tool.status in ("completed", "failed"):
            # At once, so that it comes before the next message.
            self._changed.pop(tool.id, None)
            self._events.append(("tool", tool.as_json()))
        else:
            self._changed[tool.id] = tool

    def _find_tool_call(self, name: str) -> ToolCall:
        tool = self.tool_calls.get(name)
        if tool is None:
            if len(self.tool_calls) >= MAX_TOOL_CALLS:
                self._drop_oldest(None)
            tool = self.tool_calls[name] = ToolCall(name)
        return tool

    def _apply_update(self, tool: ToolCall, update: Json, *, asks: bool = False) -> bool:
        before = tool.size
        changed = tool.apply_update(update, asks=asks)
        self._kept += tool.size - before
        while self._kept > MAX_KEPT:
            self._drop_oldest(tool)
        return changed

    def _drop_oldest(self, current: ToolCall | None) -> None:
        """A call that waits for the owner stays, so that every later change of it is seen."""
        oldest = next((one for one in self.tool_calls.values() if not one.waiting and one is not current), None)
        if oldest is None:
            raise AgentError("agent.too-large", f"The tool calls that wait are larger than {MAX_KEPT} characters")
        self._kept -= oldest.size
        del self.tool_calls[oldest.id]

    def _add_title(self, update: Json) -> None:
        if isinstance(update.get("title"), str) and update["title"].strip():
            self._events.append(("info", {"title": update["title"].strip()[:200]}))

    def _add_commands(self, update: Json) -> None:
        listed = update.get("availableCommands")
        commands: list[Json] = []
        for one in listed[:200] if isinstance(listed, list) else []:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                description = str(one.get("description") or "")[:500]
                commands.append({"name": one["name"][:100], "description": description})
        if commands != self._commands:
            self._commands = commands
            self._events.append(("commands", {"commands": commands}))


def _read_plan(entries: object) -> list[Json]:
    plan: list[Json] = []
    for one in entries[:200] if isinstance(entries, list) else []:
        if isinstance(one, dict) and isinstance(one.get("content"), str):
            status, priority = str(one.get("status"))[:20], str(one.get("priority"))[:20]
            plan.append({"content": one["content"][:2000], "status": status, "priority": priority})
    return plan
