"""One timeline event: its fields, its limits, and its link in the hash chain."""

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
"""The previous hash of the first event."""

DATA_LIMIT = 64 * 1024
DEPTH_LIMIT = 32
INTEGER_BITS = 4096  # Python itself refuses to read and write much longer ones
WHO_LIMIT = 256
KIND_LIMIT = 80

_KIND = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+")


@dataclass(frozen=True)
class TimelineEvent:
    """Something that happened. `seq` gives the order; `at` is the clock's time, and the clock may have been changed."""

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
    """Raises `timeline.bad-kind` unless the kind has the form `room.past_tense`."""
    if len(kind) > KIND_LIMIT or not _KIND.fullmatch(kind):
        raise FreeholdError(
            "timeline.bad-kind",
            f"{kind[:KIND_LIMIT]!r} is not a valid kind of event",
            hint="A kind is a room, a dot and what happened, such as egress.request_refused",
        )


def check_who(who: str) -> None:
    if not who or len(who) > WHO_LIMIT or not who.isprintable():
        raise FreeholdError(
            "timeline.bad-who",
            f"{who[:WHO_LIMIT]!r} is not a valid name for who did it",
            hint=f"Use a printable name of 1 to {WHO_LIMIT} characters, such as owner or agent:claude",
        )


def encode_data(kind: str, data: Mapping[str, Json]) -> str:
    """The canonical text of an event's data: sorted keys, no spaces, ASCII.

    Only plain JSON types are accepted, and no subclasses: the caller must convert a masked secret, a date or a path, so
    that nothing is written by accident.
    """
    if not isinstance(data, Mapping):
        raise _refused(kind, "data", data)
    text = json.dumps(_plain(kind, data, "data", 0), sort_keys=True, separators=(",", ":"), allow_nan=False)
    if len(text) > DATA_LIMIT:
        raise FreeholdError(
            "timeline.too-big",
            f"The data of {kind} is {len(text)} bytes long; an event may hold {DATA_LIMIT}",
            hint="Shorten it, or write it to a file and put the name of the file into the event",
        )
    return text


def digest(previous: str, seq: int, at: str, kind: str, who: str, data: str) -> str:
    """SHA-256 over the previous hash and the canonical event. `data` is the stored text."""
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
    # The value is not shown: it may be a secret.
    return FreeholdError(
        "timeline.not-json",
        f"{where[:200]} of {kind} is of type {type(value).__name__}, which the timeline cannot store",
        hint=f"Use text, finite numbers, true, false, null, lists and objects with text keys, at most {DEPTH_LIMIT} deep",
    )
