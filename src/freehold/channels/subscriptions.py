"""The browsers that get push messages, and the key with which we sign for their push services. Every method blocks."""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.channels.contract import OwnerAddress
from freehold.channels.kinds import is_here
from freehold.channels.store import ChannelStore, secret_name, set_owner
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_private, parse_ip, split_url
from freehold.timeline import Timeline

if TYPE_CHECKING:
    from freehold.channels.push_encryption import Key, PushKeys

WEB_PUSH = "webpush"
"""The name of the one channel of this kind."""
MAX_SUBSCRIPTIONS = 20


_NUMBER = re.compile(r".*\.(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)


@dataclass(frozen=True)
class PushSubscription:
    id: str
    endpoint: str
    p256dh: str
    auth: str
    label: str
    added: float

    def read_keys(self) -> "PushKeys":
        from freehold.channels.push_encryption import PushKeys, decode_url

        return PushKeys(decode_url(self.p256dh), decode_url(self.auth))


class PushSubscriptions:
    """`contact` is what the push service is told of who sends."""

    def __init__(
        self,
        timeline: Timeline,
        store: ChannelStore,
        vault: Vault,
        contact: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._timeline = timeline
        self._store = store
        self._vault = vault
        self.contact = contact
        self._clock = clock

    def list(self) -> list[PushSubscription]:
        rows = self._timeline.query(
            "SELECT id, endpoint, p256dh, auth, label, added FROM channels_subscription ORDER BY added"
        )
        return [PushSubscription(*row) for row in rows]

    def add(self, endpoint: str, p256dh: str, auth: str, label: str, *, who: str) -> PushSubscription:
        """A browser of the owner's that is signed in. Idempotent by its endpoint."""
        check_endpoint(endpoint)
        _check_keys(p256dh, auth)
        self.read_key()
        if self._store.find(WEB_PUSH) is None:
            self._store.add(WEB_PUSH, "webpush", {}, who=who)
        now = self._clock()
        with self._timeline.transaction() as tx:
            ((count,),) = tx.execute("SELECT count(*) FROM channels_subscription").fetchall()
            known = tx.execute("SELECT 1 FROM channels_subscription WHERE endpoint = ?", (endpoint,)).fetchone()
            if count >= MAX_SUBSCRIPTIONS and known is None:
                raise FreeholdError(
                    "channels.too-many", f"{MAX_SUBSCRIPTIONS} browsers get messages already", hint="Remove one first"
                )
            tx.execute(
                "INSERT INTO channels_subscription (id, endpoint, p256dh, auth, label, added) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (endpoint) DO UPDATE SET p256dh = excluded.p256dh, auth = excluded.auth",
                (secrets.token_hex(8), endpoint, p256dh, auth, label, now),
            )
            tx.execute("UPDATE channels_channel SET refusal = NULL WHERE name = ?", (WEB_PUSH,))
            ((paired,),) = tx.execute("SELECT paired FROM channels_channel WHERE name = ?", (WEB_PUSH,)).fetchall()
            if paired is None:
                set_owner(tx, WEB_PUSH, OwnerAddress("browsers", "browsers"), now, who=who)
            tx.append("channels.browser_added", {"label": label, "service": urlsplit(endpoint).hostname or ""}, who=who)
        return next(one for one in self.list() if one.endpoint == endpoint)

    def remove(self, id: str, *, who: str = "freehold") -> bool:
        with self._timeline.transaction() as tx:
            removed = tx.execute("DELETE FROM channels_subscription WHERE id = ?", (id,)).rowcount
            if removed:
                tx.append("channels.browser_removed", {"id": id}, who=who)
        return bool(removed)

    def read_key(self) -> "Key":
        """Made at first use, and kept in the vault."""
        from freehold.channels.push_encryption import make_key, read_key, store_key

        try:
            return read_key(self._vault.get(secret_name(WEB_PUSH)).reveal())
        except FreeholdError as error:
            if error.code != "secret.not-found":
                raise
        key = make_key()
        self._vault.set(secret_name(WEB_PUSH), store_key(key))
        return key


def check_endpoint(endpoint: str) -> None:
    """A push service on the internet. Raises `channels.bad-address`: it must lead to no other place of this network."""
    parts = split_url(endpoint)
    host = (parts.hostname or "").rstrip(".") if parts is not None else ""
    # A name whose last part is a number is an address to the resolver: 127.1 is this machine.
    private = is_private(host) or (parse_ip(host) is None and ("." not in host or _NUMBER.fullmatch(host) is not None))
    if parts is not None and is_here(host) and parts.scheme == "http":
        private = False  # a push service on this machine
    if parts is None or private or parts.username is not None or (parts.scheme != "https" and not is_here(host)):
        raise FreeholdError(
            "channels.bad-address",
            "This is not an address of a push service",
            hint="Turn on push messages in the page: the browser gives the address",
        )


def _check_keys(p256dh: str, auth: str) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    from freehold.channels.push_encryption import decode_url

    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode_url(p256dh))
        valid = len(decode_url(auth)) == 16
    except ValueError:
        valid = False
    if not valid:
        raise FreeholdError("channels.bad-key", "These are not the keys of a browser for push messages")
