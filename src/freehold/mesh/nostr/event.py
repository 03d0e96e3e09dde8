"""Events of Nostr (NIP-01): made, signed, read strictly and checked."""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.mesh.nostr.keys import NostrKey, is_hex, verify_signature

MAX_CONTENT = 65_536
MAX_TAGS = 2_000
MAX_TAG_PARTS = 100
MAX_KIND = 65_535
MAX_TIME = 2**40
_FIELDS = frozenset({"id", "pubkey", "created_at", "kind", "tags", "content", "sig"})

Tags = tuple[tuple[str, ...], ...]


class BadEvent(ValueError):
    """What was received is not an event. The message says why."""


@dataclass(frozen=True)
class NostrEvent:
    """A signed event. One that comes from `read_event` has the right id; `is_signed` checks the signature."""

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: Tags
    content: str
    sig: str

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "tags": [list(tag) for tag in self.tags]}

    def tag(self, name: str) -> str | None:
        """The value of the first tag of this name."""
        return next((tag[1] for tag in self.tags if len(tag) > 1 and tag[0] == name), None)

    @property
    def is_signed(self) -> bool:
        return verify_signature(self.pubkey, bytes.fromhex(self.id), self.sig)

    @property
    def is_replaceable(self) -> bool:
        return self.kind in (0, 3) or 10_000 <= self.kind < 20_000

    @property
    def is_ephemeral(self) -> bool:
        return 20_000 <= self.kind < 30_000

    @property
    def is_addressable(self) -> bool:
        return 30_000 <= self.kind < 40_000


def find_id(pubkey: str, created_at: int, kind: int, tags: Sequence[Sequence[str]], content: str) -> str:
    """Raises `BadEvent` for text that is not Unicode."""
    body = [0, pubkey, created_at, kind, [list(tag) for tag in tags], content]
    try:
        return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
    except UnicodeEncodeError:
        raise BadEvent("it has text that is not Unicode") from None


def sign_event(
    key: NostrKey, kind: int, content: str = "", tags: Iterable[Sequence[str]] = (), *, created_at: int | None = None
) -> NostrEvent:
    at = int(time.time()) if created_at is None else created_at
    fixed = tuple(tuple(tag) for tag in tags)
    id = find_id(key.public, at, kind, fixed, content)
    return NostrEvent(id, key.public, at, kind, fixed, content, key.sign(bytes.fromhex(id)))


def read_event(value: object) -> NostrEvent:
    """Checks the shape, the bounds and the id, and not yet the signature. Raises `BadEvent`."""
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        raise BadEvent("it does not have the fields of an event")
    found = _read_fields(value)
    if find_id(found.pubkey, found.created_at, found.kind, found.tags, found.content) != found.id:
        raise BadEvent("its id is not that of its content")
    return found


def read_signed_event(text: str | bytes) -> NostrEvent:
    """One event as JSON, with a signature that is right. Raises `BadEvent`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BadEvent("it is not JSON") from None
    event = read_event(value)
    if not event.is_signed:
        raise BadEvent("its signature is wrong")
    return event


def _read_fields(value: dict[str, Any]) -> NostrEvent:
    id, pubkey, sig, content = value["id"], value["pubkey"], value["sig"], value["content"]
    if not (isinstance(id, str) and is_hex(id, 64) and isinstance(pubkey, str) and is_hex(pubkey, 64)):
        raise BadEvent("its id or its key is not 64 hex digits")
    if not (isinstance(sig, str) and is_hex(sig, 128)):
        raise BadEvent("its signature is not 128 hex digits")
    at, kind = value["created_at"], value["kind"]
    if type(at) is not int or not 0 <= at <= MAX_TIME or type(kind) is not int or not 0 <= kind <= MAX_KIND:
        raise BadEvent("its time or its kind is not a number that it can have")
    if not isinstance(content, str) or len(content) > MAX_CONTENT:
        raise BadEvent(f"its content is not a text of at most {MAX_CONTENT} characters")
    return NostrEvent(id, pubkey, at, kind, _read_tags(value["tags"]), content, sig)


def _read_tags(value: object) -> Tags:
    if not isinstance(value, list) or len(value) > MAX_TAGS:
        raise BadEvent(f"its tags are not a list of at most {MAX_TAGS}")
    for tag in value:
        if not isinstance(tag, list) or len(tag) > MAX_TAG_PARTS or not all(isinstance(part, str) for part in tag):
            raise BadEvent("a tag is not a list of texts")
    return tuple(tuple(tag) for tag in value)
