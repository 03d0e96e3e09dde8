"""Programs on other machines that request an API token: `freehold login` waits while the owner decides in a browser."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from freehold.errors import FreeholdError
from freehold.gateway.addresses import rate_limit_key
from freehold.identity.tokens import Scope

REQUEST_LIFETIME = 600.0
MAX_WAITING = 100
MAX_PER_ADDRESS = 5
"""Of one network: an IPv4 address, or the /64 network of an IPv6 address."""
# No vowels and no letters that look alike: the code is read on one screen and typed on another.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(frozen=True)
class DeviceRequest:
    """A program that waits for its token. `secret` is set when the owner has allowed it, and is returned once."""

    code: str
    name: str
    scopes: tuple[Scope, ...]
    address: str
    created: float
    answer: Literal["waiting", "allowed", "denied"] = "waiting"
    secret: str | None = None


class DeviceRequests:
    """The programs that wait, in memory only. After a restart they must ask again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, DeviceRequest] = {}  # by the program's own secret

    def ask(self, name: str, scopes: tuple[Scope, ...], address: str) -> tuple[DeviceRequest, str]:
        """A new request, and the secret with which the program collects the answer.

        It is never refused for what strangers have asked. Where there are too many, the oldest that waits is dropped:
        of the same network, else of the network with the most.
        """
        self._remove_expired()
        network = rate_limit_key(address)
        if len(of_network := self._waiting_of(network)) >= MAX_PER_ADDRESS:
            del self._waiting[of_network[0]]
        elif len(self._waiting) >= MAX_WAITING:
            counts = Counter(rate_limit_key(device.address) for device in self._waiting.values())
            most = max(counts, key=lambda found: (counts[found], found != network))
            del self._waiting[(self._waiting_of(most) or list(self._waiting))[0]]
        code = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        own = secrets.token_urlsafe(32)
        device = DeviceRequest(code, name, scopes, address, self._clock())
        self._waiting[own] = device
        return device, own

    def _waiting_of(self, network: str) -> list[str]:
        """The secrets of its requests that have no answer yet, oldest first; then of those that wait to be collected."""
        own = [secret for secret, device in self._waiting.items() if rate_limit_key(device.address) == network]
        return sorted(own, key=lambda secret: self._waiting[secret].answer != "waiting")

    def find(self, code: str) -> DeviceRequest:
        """The waiting program with this code. Raises `device.not-found`."""
        self._remove_expired()
        wanted = code.strip().upper()
        for device in self._waiting.values():
            if secrets.compare_digest(device.code.encode(), wanted.encode()) and device.answer == "waiting":
                return device
        raise FreeholdError(
            "device.not-found", f"No program waits with the code {wanted[:20]!r}", hint="Start again: freehold login"
        )

    def answer(self, code: str, secret: str | None) -> None:
        """Allow with a token's secret, or deny with None. Works once."""
        device = self.find(code)
        own = next(key for key, value in self._waiting.items() if value is device)
        self._waiting[own] = replace(device, answer="denied" if secret is None else "allowed", secret=secret)

    def collect(self, own: str) -> DeviceRequest:
        """The request with its answer. An answer is returned once; until then the answer is `waiting`."""
        self._remove_expired()
        device = self._waiting.get(own)
        if device is None:
            raise FreeholdError(
                "device.not-found",
                "This request has expired or was already answered",
                hint="Start again: freehold login",
            )
        if device.answer != "waiting":
            del self._waiting[own]
        return device

    def _remove_expired(self) -> None:
        oldest = self._clock() - REQUEST_LIFETIME
        for own in [own for own, device in self._waiting.items() if device.created < oldest]:
            del self._waiting[own]
