"""Signed requests between Freeholds, as NIP-98 has them: address, method and body are signed, and each works once."""

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from freehold.errors import FreeholdError
from freehold.gateway.steady_time import steady_time
from freehold.mesh.nostr.event import BadEvent, NostrEvent, read_event, sign_event
from freehold.mesh.nostr.keys import NostrKey

HTTP_AUTH = 27235
WINDOW = 60.0
"""Seconds by which the clocks of two Freeholds may differ. The answer to another says what time it is here."""
MAX_OFFSET = 86_400
MAX_HEADER = 8 * 1024
MAX_KEPT = 200_000
EMPTY = hashlib.sha256(b"").hexdigest()


def sign_request(key: NostrKey, method: str, url: str, body: bytes = b"", *, offset: int = 0) -> str:
    """The value of the header Authorization. `offset`: seconds that the other clock is ahead."""
    tags = [["u", url], ["method", method], ["nonce", secrets.token_hex(8)]]
    if body:
        tags.append(["payload", hashlib.sha256(body).hexdigest()])
    event = sign_event(key, HTTP_AUTH, "", tags, created_at=int(time.time()) + offset)
    return "Nostr " + base64.b64encode(json.dumps(event.as_json()).encode()).decode()


def read_signature(header: bytes) -> NostrEvent | None:
    """What follows `Nostr` in the header; None when it is not an event. The signature is not checked yet."""
    if len(header) > MAX_HEADER:
        return None
    try:
        event = read_event(json.loads(base64.b64decode(header, validate=True)))
    except (BadEvent, binascii.Error, ValueError, RecursionError):
        return None
    return event if event.kind == HTTP_AUTH else None


def signed_body(event: NostrEvent) -> str:
    """The digest of the only body that it covers."""
    return event.tag("payload") or EMPTY


class SignatureCheck:
    """Checks one signed request after the other, and knows which were used. Not for several threads.

    `check` first; then `use` without a pause. What is refused in between takes no place.
    """

    def __init__(self, clock: Callable[[], float] = steady_time) -> None:
        self._clock = clock
        self._started = clock()
        self._used: OrderedDict[str, float] = OrderedDict()

    def check(self, event: NostrEvent, method: str, url: str) -> None:
        """Raises `mesh.bad-signature`, `mesh.clock-skew` or `mesh.replayed`."""
        if event.tag("method") != method or event.tag("u") != url:
            raise FreeholdError("mesh.bad-signature", "The signature is for another request")
        now = self._clock()
        if abs(event.created_at - now) > WINDOW or event.created_at < int(self._started):
            # Also from before the start: which of them were used is not known any more.
            raise FreeholdError(
                "mesh.clock-skew",
                f"The request was signed at {event.created_at}, and here it is {int(now)}",
                hint="Set the clocks of both machines. After one was set back by days: freehold restart gateway there",
            )
        if not event.is_signed:
            raise FreeholdError("mesh.bad-signature", "The signature of the request is wrong")
        if event.id in self._used:
            raise FreeholdError("mesh.replayed", "This request was received before")

    def use(self, event: NostrEvent) -> None:
        """What was checked does not pass again. Raises `mesh.busy`."""
        now = self._clock()
        self._forget(now)
        if len(self._used) >= MAX_KEPT:
            raise FreeholdError("mesh.busy", "Too many requests of neighbours")
        self._used[event.id] = now

    def _forget(self, now: float) -> None:
        while self._used:
            id, at = next(iter(self._used.items()))
            if now - at <= 2 * WINDOW + 1:
                break
            del self._used[id]


def read_offset(header: str | None, now: float) -> int | None:
    """How far the other clock is ahead, from the header `freehold-time` of a refusal; None when that is no use."""
    if header is None or not header.isdigit() or len(header) > 12:
        return None
    offset = int(header) - int(now)
    return offset if abs(offset) <= MAX_OFFSET else None
