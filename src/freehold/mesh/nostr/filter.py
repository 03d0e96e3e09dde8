"""Filters of subscriptions (NIP-01): read strictly, and compared with events."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from freehold.mesh.nostr.event import MAX_KIND, MAX_TIME, NostrEvent
from freehold.mesh.nostr.keys import is_hex

MAX_VALUES = 500
MAX_LIMIT = 500
MAX_TAGS = 5
"""Names of tags in one filter: each is compared with every new event."""
_LISTS = ("ids", "authors")


class BadFilter(ValueError):
    """A filter that cannot be used. The message says why."""


@dataclass(frozen=True)
class NostrFilter:
    """None matches everything; an empty set nothing."""

    ids: frozenset[str] | None = None
    authors: frozenset[str] | None = None
    kinds: frozenset[int] | None = None
    tags: dict[str, frozenset[str]] = field(default_factory=dict)
    since: int | None = None
    until: int | None = None
    limit: int = MAX_LIMIT

    def matches(self, event: NostrEvent, tags: Mapping[str, AbstractSet[str]] | None = None) -> bool:
        """`tags` is `index_tags(event)`, for who compares an event with many filters."""
        if self.ids is not None and event.id not in self.ids:
            return False
        if self.authors is not None and event.pubkey not in self.authors:
            return False
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        if self.since is not None and event.created_at < self.since:
            return False
        if self.until is not None and event.created_at > self.until:
            return False
        values = index_tags(event) if tags is None else tags
        return not any(wanted.isdisjoint(values.get(name, ())) for name, wanted in self.tags.items())


def index_tags(event: NostrEvent) -> dict[str, set[str]]:
    """The values of its tags that a filter can name."""
    found: dict[str, set[str]] = {}
    for tag in event.tags:
        if len(tag) > 1 and len(tag[0]) == 1:
            found.setdefault(tag[0], set()).add(tag[1])
    return found


def read_filter(value: object) -> NostrFilter:
    """Raises `BadFilter`, also for a field that is not known: it would match more than was meant."""
    if not isinstance(value, dict):
        raise BadFilter("a filter is not an object")
    found: dict[str, Any] = {}
    tags: dict[str, frozenset[str]] = {}
    for name, one in value.items():
        if name in _LISTS:
            found[name] = frozenset(_texts(name, one, hex_digits=64))
        elif name == "kinds":
            found[name] = frozenset(_number(name, kind, MAX_KIND) for kind in _list(name, one))
        elif name in ("since", "until"):
            found[name] = _number(name, one, MAX_TIME)
        elif name == "limit":
            found[name] = min(_number(name, one, 2**31), MAX_LIMIT)
        elif len(name) == 2 and name[0] == "#" and name[1].isascii() and name[1].isalpha():
            tags[name[1]] = frozenset(_texts(name, one))
        else:
            raise BadFilter(f"a filter has no {name[:20]!a}")
    if len(tags) > MAX_TAGS:
        raise BadFilter(f"a filter has more than {MAX_TAGS} kinds of tags")
    return NostrFilter(**found, tags=tags)


def _list(name: str, value: object) -> list[object]:
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise BadFilter(f"{name} is not a list of at most {MAX_VALUES}")
    return value


def _texts(name: str, value: object, hex_digits: int | None = None) -> list[str]:
    found: list[str] = []
    for one in _list(name, value):
        if not isinstance(one, str) or len(one) > 1000 or (hex_digits is not None and not is_hex(one, hex_digits)):
            raise BadFilter(f"{name} has a value that it cannot have")
        found.append(one)
    return found


def _number(name: str, value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise BadFilter(f"{name} is not a number from 0 to {most}")
    return value
