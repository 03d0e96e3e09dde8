"""One tool call of an agent, joined from its updates. Values of the wrong type are ignored, and texts are cut."""

import json
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json

MAX_TITLE = 2000
MAX_PART = 100_000
MAX_PARTS = 50
MAX_RAW = 32 * 1024
MAX_PATH = 4096
MAX_ID = 200
KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
STATUSES = frozenset({"pending", "in_progress", "completed", "failed"})


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

    def apply_update(self, update: Json) -> bool:
        """Returns whether the title, the kind or the status changed."""
        before = (self.title, self.kind, self.status)
        if isinstance(update.get("title"), str):
            self.title = update["title"][:MAX_TITLE]
        if update.get("kind") in KINDS:
            self.kind = update["kind"]
        if update.get("status") in STATUSES:
            self.status = update["status"]
        if isinstance(update.get("locations"), list):
            paths = [one.get("path") for one in update["locations"][:MAX_PARTS] if isinstance(one, dict)]
            self.locations = [path[:MAX_PATH] for path in paths if isinstance(path, str)]
        if isinstance(update.get("content"), list):
            self.content = [part for one in update["content"][:MAX_PARTS] if (part := read_content(one))]
        if update.get("rawInput") is not None:
            raw = update["rawInput"]
            self.raw_input = raw if len(json.dumps(raw)) <= MAX_RAW else {"cut": json.dumps(raw)[:MAX_RAW]}
        return before != (self.title, self.kind, self.status)


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
