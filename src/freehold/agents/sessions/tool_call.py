"""One tool call of an agent, joined from its updates.

What the transcript shows of it is cut, and values of the wrong type are left out. `whole` has all of it, as it came.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json, decode_json
from freehold.agents.sessions.whole_call import WholeCall

MAX_TITLE = 2000
MAX_PART = 100_000
MAX_PARTS = 50
MAX_CONTENT = 400_000
"""Characters of all parts together that the transcript shows."""
MAX_RAW = 32 * 1024
MAX_PATH = 4096
MAX_ID = 200
KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
STATUSES = frozenset({"pending", "in_progress", "completed", "failed"})
_NOT_OF_THE_CALL = frozenset({"sessionUpdate", "toolCallId", "status", "rawOutput"})
"""Fields of an update that say nothing of what the call is about to do."""


@dataclass
class ToolCall:
    """A tool call with everything that the agent has reported about it so far."""

    id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    locations: list[str] = field(default_factory=list)
    content: list[Json] = field(default_factory=list)
    raw_input: Any = None
    said: WholeCall = field(default_factory=WholeCall)
    waiting: int = 0
    """How many permission requests about this call wait for an answer."""

    @property
    def whole(self) -> Json:
        """The last value of each field that describes the call. A value is replaced, never changed."""
        return self.said.fields

    @property
    def size(self) -> int:
        """About how many characters `whole` has as JSON."""
        return self.said.size

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

    def apply_update(self, update: Json, *, asks: bool = False) -> bool:
        """Returns whether the title, the kind or the status changed. `asks`: it is of a permission request.

        Raises `agent.too-large`.
        """
        before = (self.title, self.kind, self.status)
        if asks and update.get("rawInput") is None and "rawInput" not in self.whole:
            update = {**update, "rawInput": read_streamed_input(self.whole.get("content"))}
        self._keep_whole(update, asks=asks)
        if isinstance(update.get("title"), str):
            self.title = update["title"][:MAX_TITLE]
        self.kind = read_kind(update) or self.kind
        status = update.get("status")
        if isinstance(status, str) and status in STATUSES:
            self.status = status
        if isinstance(update.get("locations"), list):
            paths = [one.get("path") for one in update["locations"][:MAX_PARTS] if isinstance(one, dict)]
            self.locations = [path[:MAX_PATH] for path in paths if isinstance(path, str)]
        if isinstance(update.get("content"), list):
            self.content = _read_contents(update["content"])
        if update.get("rawInput") is not None:
            raw = update["rawInput"]
            self.raw_input = raw if len(json.dumps(raw)) <= MAX_RAW else {"cut": json.dumps(raw)[:MAX_RAW]}
        return before != (self.title, self.kind, self.status)

    def _keep_whole(self, update: Json, *, asks: bool) -> None:
        is_progress = not asks and update.get("sessionUpdate") == "tool_call_update"
        for name, value in update.items():
            # `_meta` of a progress report is about the report.
            is_left_out = _says_nothing(name, value) if asks else name in _NOT_OF_THE_CALL
            if value is None or is_left_out or (is_progress and name == "_meta"):
                continue
            self.said.add(name, value)


def read_kind(update: Mapping[str, Any]) -> str | None:
    """None when it is missing or not one of the protocol."""
    kind = update.get("kind")
    return kind if isinstance(kind, str) and kind in KINDS else None


def read_streamed_input(content: object) -> Json | None:
    """The input of a call whose only content is that input, written as JSON. None for any other content.

    Some agents, such as Kimi, send the input in this way while the model writes it, ask for permission, and name the
    input itself only after the answer.
    """
    if not isinstance(content, list) or len(content) != 1:
        return None
    block = content[0].get("content") if isinstance(content[0], dict) else None
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str):
        return None
    try:
        found = decode_json(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _says_nothing(name: str, value: Any) -> bool:
    """Whether the owner need not see this field of a permission request: it has only its own meaning."""
    if name == "sessionUpdate":
        return value in ("tool_call", "tool_call_update")
    return name == "toolCallId" or (name == "status" and isinstance(value, str) and value in STATUSES)


def _read_contents(listed: list[Any]) -> list[Json]:
    """What the transcript shows. Each update stores it again, so all of it together has a limit."""
    found: list[Json] = []
    left = MAX_CONTENT
    for part in filter(None, map(read_content, listed[:MAX_PARTS])):
        for name in ("text", "old", "new"):
            if isinstance(part.get(name), str):
                part[name] = part[name][:left]
                left -= len(part[name])
        found.append(part)
    return found


def read_content(one: object) -> Json | None:
    """One part of a tool call's content, in the form of Freehold's API. None when it has no known form."""
    if not isinstance(one, dict):
        return None
    if one.get("type") == "diff" and isinstance(one.get("path"), str):
        old, new = one.get("oldText"), one.get("newText")
        return {
            "type": "diff",
            "path": one["path"][:MAX_PATH],
            "old": old[:MAX_PART] if isinstance(old, str) else None,
            "new": new[:MAX_PART] if isinstance(new, str) else "",
        }
    if one.get("type") == "terminal" and isinstance(one.get("terminalId"), str):
        return {"type": "terminal", "id": one["terminalId"][:MAX_ID]}
    inner = one.get("content")
    if one.get("type") == "content" and isinstance(inner, dict):
        return {"type": "text", "text": read_block_text(inner)[:MAX_PART]}
    return None


def read_block_text(block: Json) -> str:
    """The text of a content block. For a block without text, its address or type in brackets."""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if isinstance(block.get("uri"), str):
        return f"[{block['uri'][:2000]}]"
    return f"[{str(block.get('type'))[:40]}]"
