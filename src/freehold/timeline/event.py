"""One entry of the timeline: what it holds, what it refuses, and how it is chained to the one before."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from freehold.errors import FreeholdError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

GENESIS = "0" * 64
"""What the first event is chained to."""

DATA_LIMIT = 64 * 1024
DEPTH_LIMIT = 32
INTEGER_BITS = 4096  # Python itself refuses to read and write much longer ones
WHO_LIMIT = 256
KIND_LIMIT = 80

_KIND = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+")


@dataclass(frozen=True)
class Event:
    """Something that happened. `seq` orders events; `at` is what the clock said, which may have jumped."""

    seq: int
    at: str
    kind: str
    who: str
    data: Mapping[str, Json]
    hash: str
    previous: str

    def as_json(self) -> dict[str, Json]:
        return {
            "seq": self.seq,
            "at": self.at,
            "kind": self.kind,
            "who": self.who,
            "data": self.data,
            "hash": self.hash,
            "previous": self.previous,
        }


def check_kind(kind: str) -> None:
    """Refuses what is not `room.past_tense`."""
    if len(kind) > KIND_LIMIT or not _KIND.fullmatch(kind):
        raise FreeholdError(
            "timeline.bad-kind",
            f"{kind[:KIND_LIMIT]!r} is not a kind of event",
            hint="A kind is the room, a dot and what happened there, as in egress.request_refused",
        )


def check_who(who: str) -> None:
    if not who or len(who) > WHO_LIMIT or not who.isprintable():
        raise FreeholdError(
            "timeline.bad-who",
            f"{who[:WHO_LIMIT]!r} does not name who did it",
            hint=f"Give a printable name of 1 to {WHO_LIMIT} characters, as in owner or agent:claude",
        )


def encode_data(kind: str, data: Mapping[str, Json]) -> str:
    """The canonical text of an event's data: sorted keys, no spaces, ASCII.

    Only plain JSON types are taken, never a subclass: a masked secret, a date or a path must be spelled out
    by the caller, so that nothing is written here by accident.
    """
    if not isinstance(data, Mapping):
        raise _refused(kind, "data", data)
    text = json.dumps(_plain(kind, data, "data", 0), sort_keys=True, separators=(",", ":"), allow_nan=False)
    if len(text) > DATA_LIMIT:
        raise FreeholdError(
            "timeline.too-big",
            f"The data of {kind} is {len(text)} bytes long; an event may hold {DATA_LIMIT}",
            hint="Write the content to a file, or shorten it, and let the event name it",
        )
    return text


def digest(previous: str, seq: int, at: str, kind: str, who: str, data: str) -> str:
    """SHA-256 over the previous hash and the canonical event; `data` is taken as it is stored."""
    head = json.dumps(at)
    tail = f'"kind":{json.dumps(kind)},"seq":{seq},"who":{json.dumps(who)}'
    text = f'{previous}{{"at":{head},"data":{data},{tail}}}'
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _plain(kind: str, value: object, where: str, depth: int) -> object:
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int and value.bit_length() <= INTEGER_BITS:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if depth < DEPTH_LIMIT:
        if isinstance(value, Mapping):
            for key in value:
                if type(key) is not str:
                    raise _refused(kind, f"a key of {where}", key)
            return {key: _plain(kind, item, f"{where}.{key}", depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            return [_plain(kind, item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    raise _refused(kind, where, value)


def _refused(kind: str, where: str, value: object) -> FreeholdError:
    # The value itself is not shown: it may be the secret that was refused.
    return FreeholdError(
        "timeline.not-json",
        f"{where[:200]} of {kind} is of type {type(value).__name__}, which the timeline does not hold",
        hint=f"Give text, whole or finite numbers, true, false, null, lists and maps with text keys, at most {DEPTH_LIMIT} deep",
    )
