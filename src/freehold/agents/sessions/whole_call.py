"""Everything that an agent has said about a tool call. Adding an update costs what the update is long, not the call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from freehold.agents.acp.json_rpc import AgentError, Json

Joined = TypeVar("Joined", list[Any], dict[str, Any])

MAX_JOINED = 10_000
"""Fields, keys of the input, locations, or changes that one call may have in all its updates together."""


@dataclass
class WholeCall:
    """`fields` has the last value of each field. A value is replaced, never changed, so a copy of `fields` stays as it is.

    The input and the paths only grow: an agent cannot take back what it has said of them by leaving it out.
    """

    fields: Json = field(default_factory=dict)
    size: int = 0
    """About how many characters it has as JSON."""
    _parts: dict[str, Mapping[Any, int]] = field(default_factory=dict)
    """For each field the size of its parts, by what identifies them."""

    def add(self, name: str, value: Any) -> None:
        """Raises `agent.too-large`."""
        before = self.fields.get(name)
        joined: Any
        parts: Mapping[Any, int]
        if name == "rawInput" and isinstance(value, dict):
            joined, parts = self._join_input(before, value)
        elif name == "locations" and isinstance(value, list):
            joined, parts = self._join_locations(before, value)
        elif name == "content" and isinstance(value, list):
            joined, parts = self._join_content(before, value)
        else:
            joined, parts = value, {None: _measure(value)}
        old = self._parts.get(name, {})
        self.size += sum(parts.values()) - sum(old.values()) + (0 if name in self.fields else len(name))
        self.fields[name], self._parts[name] = joined, parts
        _limit(self.fields, "fields")

    def _join_input(self, before: Any, value: Json) -> tuple[Json, Mapping[Any, int]]:
        _limit(value, "keys")
        given = {key: len(key) + _measure(each) for key, each in value.items()}
        if not isinstance(before, dict):
            return value, given
        return _limit({**before, **value}, "keys"), {**self._parts["rawInput"], **given}

    def _join_locations(self, before: Any, value: list[Any]) -> tuple[list[Any], Mapping[Any, int]]:
        given = {json.dumps(one, sort_keys=True): one for one in _limit(value, "locations")}
        if isinstance(before, list):
            # In the order in which each was first named.
            given = {**dict(zip(self._parts["locations"], before, strict=True)), **given}
        return list(_limit(given, "locations").values()), {key: len(key) for key in given}

    def _join_content(self, before: Any, value: list[Any]) -> tuple[list[Any], Mapping[Any, int]]:
        """An update replaces all content but the changes of files that it does not name."""
        named = {path for one in value if (path := _changed_path(one)) is not None}
        kept: list[Any] = []
        if isinstance(before, list):
            kept = [one for one in before if (path := _changed_path(one)) is not None and path not in named]
        sizes = self._parts.get("content", {})
        joined = [*value, *_limit(kept, "changes")]
        # Objects are never changed, and live as long as the list: their identity stands for them. A value that is no
        # object, such as a number, can be there many times; it counts each time.
        parts: dict[Any, int] = {id(one): sizes[id(one)] for one in kept}
        for one in value:
            parts[id(one)] = parts.get(id(one), 0) + _measure(one)
        return joined, parts


def _measure(value: Any) -> int:
    return len(json.dumps(value))


def _changed_path(one: object) -> str | None:
    """The path of a change; None for other content, which an update replaces."""
    path = one.get("path") if isinstance(one, dict) and one.get("type") == "diff" else None
    return path if isinstance(path, str) else None


def _limit(joined: Joined, what: str) -> Joined:
    if len(joined) > MAX_JOINED:
        raise AgentError("agent.too-large", f"A tool call of the agent names more than {MAX_JOINED} {what}")
    return joined
