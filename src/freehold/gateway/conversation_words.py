"""Leaves out the words of conversations in what a token sees that may not read conversations (scope `prompt`)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from freehold.gateway.principal import principal_of

if TYPE_CHECKING:
    from starlette.requests import Request

_FAMILIES = frozenset(("turn", "tool", "approval", "session", "ssh", "policy", "channels", "routine", "workflow"))
"""Timeline events with words of the owner, of an agent, or commands."""
_CONVERSATION = ("session", "agent", "mode", "kind", "status", "stop_reason", "changes", "usage")
_KEPT = frozenset((*_CONVERSATION, "approval", "answer", "digest", "routine", "run", "trigger", "workflow", "step"))
"""Their fields that hold no words. Numbers are kept as well."""

_RESTORES = frozenset(("undo", "redo", "restore", "revert"))
"""Kinds of history entries whose reason Freehold writes."""


def may_read_words(request: "Request") -> bool:
    return principal_of(request.scope).has_scope("prompt")


def event_without_words(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a timeline event."""
    if kind.partition(".")[0] not in _FAMILIES:
        return dict(data)
    return {name: value for name, value in data.items() if name in _KEPT or isinstance(value, (int, float, type(None)))}


def entries_without_words(reply: Any) -> Any:
    """A reply of history: its entries have neither the prompt nor the command that led to them."""
    if isinstance(reply, list):
        return [entries_without_words(item) for item in reply]
    if not isinstance(reply, dict):
        return reply
    shown = {name: entries_without_words(value) for name, value in reply.items() if name != "prompt"}
    if "why" in shown and not _is_own_reason(shown):
        shown["why"] = ""
    return shown


def _is_own_reason(entry: Mapping[str, Any]) -> bool:
    """Whether Freehold itself said why the entry was made. Otherwise it is a prompt, a command or an author's word."""
    if entry.get("kind") in _RESTORES:
        return True
    who = entry.get("who")
    return isinstance(who, dict) and who.get("by") == "unknown" and entry.get("kind") not in ("turn", "command")
