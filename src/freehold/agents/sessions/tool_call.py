"""One tool call of an agent, joined from its updates.

What the transcript shows of it is cut, and values of the wrong type are left out. `whole` has all of it, as it came.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import AgentError, Json

MAX_TITLE = 2000
MAX_PART = 100_000
MAX_PARTS = 50
MAX_JOINED = 10_000
"""Locations, or changes, that one call may name in all its updates together."""
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
    whole: Json = field(default_factory=dict)
    """The last value of each field that describes the call. A value is replaced, never changed."""
    size: int = 0
    """Characters of `whole` as JSON."""
    waiting: int = 0
    """How many permission requests about this call wait for an answer."""
    _sizes: dict[str, int] = field(default_factory=dict)

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
            self.content = [part for one in update["content"][:MAX_PARTS] if (part := read_content(one))]
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
            self.whole[name] = joined = _join(name, self.whole.get(name), value)
            self._sizes[name] = len(name) + len(json.dumps(joined))
        self.size = sum(self._sizes.values())


def read_kind(update: Mapping[str, Any]) -> str | None:
    """None when it is missing or not one of the protocol."""
    kind = update.get("kind")
    return kind if isinstance(kind, str) and kind in KINDS else None


def _says_nothing(name: str, value: Any) -> bool:
    """Whether the owner need not see this field of a permission request: it has only its own meaning."""
    if name == "sessionUpdate":
        return value in ("tool_call", "tool_call_update")
    return name == "toolCallId" or (name == "status" and isinstance(value, str) and value in STATUSES)


def _join(name: str, before: Any, value: Any) -> Any:
    """The input and the paths of a call only grow: an agent cannot take back what it has said of them by leaving it out."""
    if name == "rawInput" and isinstance(before, dict) and isinstance(value, dict):
        return {**before, **value}
    if name == "locations" and isinstance(before, list) and isinstance(value, list):
        joined = list({json.dumps(one, sort_keys=True): one for one in (*before, *value)}.values())
        return _limit(joined, "locations")
    if name == "content" and isinstance(before, list) and isinstance(value, list):
        named = {path for one in value if (path := _changed_path(one)) is not None}
        kept = [one for one in before if (path := _changed_path(one)) is not None and path not in named]
        return [*value, *_limit(kept, "changes")]
    return value


def _changed_path(one: object) -> str | None:
    """The path of a change; None for other content, which an update replaces."""
    path = one.get("path") if isinstance(one, dict) and one.get("type") == "diff" else None
    return path if isinstance(path, str) else None


def _limit(joined: list[Any], what: str) -> list[Any]:
    if len(joined) > MAX_JOINED:
        raise AgentError("agent.too-large", f"A tool call of the agent names more than {MAX_JOINED} {what}")
    return joined


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
