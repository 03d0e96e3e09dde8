"""One-time tickets for downloads.

A page sends its key in a header, and a link has no headers. The page asks for a ticket instead: it opens one address,
once, within 30 seconds.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from freehold.identity.sign_ins import SignIn, SignIns

TICKET_TTL = 30.0
MAX_TICKETS = 256
TICKET = b"ticket="


@dataclass(frozen=True)
class _Ticket:
    address: bytes
    sign_in: str
    expires: float


class DownloadTickets:
    """The tickets that were not used yet, in memory only."""

    def __init__(self, sign_ins: SignIns, clock: Callable[[], float] = time.monotonic) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._waiting: OrderedDict[bytes, _Ticket] = OrderedDict()

    def create(self, sign_in: SignIn, address: str) -> str:
        """The address with a ticket. The oldest ticket is dropped when there are too many."""
        token = secrets.token_urlsafe(32)
        while len(self._waiting) >= MAX_TICKETS:
            self._waiting.popitem(last=False)
        self._waiting[_digest(token.encode())] = _Ticket(address.encode(), sign_in.id, self._clock() + TICKET_TTL)
        return f"{address}{'&' if '?' in address else '?'}{TICKET.decode()}{token}"

    def redeem(self, path: bytes, query: bytes) -> SignIn | None:
        """The sign-in whose ticket is the last parameter of this query, for this very address. It is used up either way."""
        before, found, token = query.rpartition(TICKET)
        if not found or (before and not before.endswith(b"&")):
            return None
        waiting = self._waiting.pop(_digest(token), None)
        address = path + (b"?" + before[:-1] if before else b"")
        if waiting is None or waiting.address != address or waiting.expires < self._clock():
            return None
        sign_in = self._sign_ins.find_active(waiting.sign_in)
        return sign_in if sign_in is not None and sign_in.method != "recovery" else None


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
