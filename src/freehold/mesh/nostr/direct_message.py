"""Direct messages that hide who writes to whom (NIP-17): a rumor in a seal in a gift wrap (NIP-59)."""

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.mesh.nostr.encryption import BadCipherText, decrypt, encrypt
from freehold.mesh.nostr.event import BadEvent, NostrEvent, Tags, find_id, read_event, read_signed_event, sign_event
from freehold.mesh.nostr.keys import NostrKey, is_hex, make_key

CHAT = 14
SEAL = 13
WRAP = 1059
MAX_RUMOR = 28_000
"""Bytes of a message as JSON. Sealed and wrapped it is below 64 KiB, which is what relays take."""
BACKDATED = 2 * 86_400
"""Seconds by which a seal or a wrap may be dated back, so that its time tells nothing."""


@dataclass(frozen=True)
class Rumor:
    """An event without a signature: whoever receives it cannot show it around as proof."""

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: Tags
    content: str


def write_rumor(
    author: str, receiver: str, content: str, *, kind: int = CHAT, tags: Iterable[Sequence[str]] = ()
) -> Rumor:
    """A message for one receiver, which nobody has sealed yet."""
    fixed = (("p", receiver), *(tuple(tag) for tag in tags))
    at = int(time.time())
    return Rumor(find_id(author, at, kind, fixed, content), author, at, kind, fixed, content)


def wrap_rumor(sender: NostrKey, receiver: str, rumor: Rumor) -> NostrEvent:
    """A gift wrap for one receiver, signed by a key that is used once. Raises `mesh.too-large`."""
    text = _write({**vars(rumor), "tags": [list(tag) for tag in rumor.tags]})
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_RUMOR:
        raise FreeholdError(
            "mesh.too-large", f"The message takes {size} bytes", hint=f"At most {MAX_RUMOR} can be encrypted for relays"
        )
    sealed = encrypt(sender.share_with(receiver), text)
    seal = sign_event(sender, SEAL, sealed, created_at=_past())
    once = make_key()
    wrapped = encrypt(once.share_with(receiver), _write(seal.as_json()))
    return sign_event(once, WRAP, wrapped, [("p", receiver)], created_at=_past())


def wrap_message(
    sender: NostrKey, receiver: str, content: str, *, kind: int = CHAT, tags: Iterable[Sequence[str]] = ()
) -> NostrEvent:
    """A new message in a gift wrap."""
    return wrap_rumor(sender, receiver, write_rumor(sender.public, receiver, content, kind=kind, tags=tags))


def unwrap_message(receiver: NostrKey, wrap: NostrEvent) -> Rumor:
    """The message inside, by the key that sealed it. Raises `BadEvent`. The wrap's own signature is checked before."""
    try:
        seal = read_signed_event(decrypt(receiver.share_with(wrap.pubkey), wrap.content))
        if seal.kind != SEAL or seal.tags:
            raise BadEvent("what is inside is not a seal")
        value = json.loads(decrypt(receiver.share_with(seal.pubkey), seal.content))
    except (BadCipherText, RecursionError) as error:
        raise BadEvent(f"it cannot be opened: {error}") from None
    except ValueError as error:
        raise BadEvent(str(error)[:200]) from None
    rumor = _read_rumor(value)
    if rumor.pubkey != seal.pubkey:
        raise BadEvent("the message names another author than its seal")
    return rumor


def _read_rumor(value: object) -> Rumor:
    if not isinstance(value, dict):
        raise BadEvent("the message is not an object")
    fields = {name: one for name, one in value.items() if name != "sig"}
    pubkey = fields.get("pubkey")
    if not isinstance(pubkey, str) or not is_hex(pubkey, 64):
        raise BadEvent("the message has no author")
    event = read_event({**fields, "sig": "0" * 128})
    return Rumor(event.id, event.pubkey, event.created_at, event.kind, event.tags, event.content)


def _write(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _past() -> int:
    return int(time.time()) - secrets.randbelow(BACKDATED)
