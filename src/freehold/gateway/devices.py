"""Programs elsewhere that ask for a token: `freehold login` waits while the owner decides in a browser."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from freehold.errors import FreeholdError
from freehold.identity.tokens import Scope

LIFETIME = 600.0
MAX_WAITING = 100
MAX_FROM_ONE = 5
# No vowels and nothing that looks like something else: the code is read from one screen and typed on another.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(frozen=True)
class Device:
    """A program that waits. `secret` is set when the owner has said yes, and is handed over once."""

    code: str
    name: str
    scopes: tuple[Scope, ...]
    address: str
    created: float
    answer: Literal["waiting", "allowed", "denied"] = "waiting"
    secret: str | None = None


class Devices:
    """The programs that wait, in memory only: a restart ends them, and they ask again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, Device] = {}  # by the program's own secret

    def ask(self, name: str, scopes: tuple[Scope, ...], address: str) -> tuple[Device, str]:
        """A new request and the secret with which the program comes back for its answer."""
        self._forget_old()
        from_there = sum(device.address == address for device in self._waiting.values())
        if len(self._waiting) >= MAX_WAITING or from_there >= MAX_FROM_ONE:
            raise FreeholdError(
                "device.too-many", "Too many programs are waiting for a token", hint="Try again in ten minutes"
            )
        code = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        own = secrets.token_urlsafe(32)
        device = Device(code, name, scopes, address, self._clock())
        self._waiting[own] = device
        return device, own

    def find(self, code: str) -> Device:
        """The program that shows this code to the owner."""
        self._forget_old()
        wanted = code.strip().upper()
        for device in self._waiting.values():
            if secrets.compare_digest(device.code.encode(), wanted.encode()) and device.answer == "waiting":
                return device
        raise FreeholdError("device.not-found", "No program waits with that code", hint="Start again: freehold login")

    def answer(self, code: str, secret: str | None) -> None:
        """Say yes with a token's secret, or no with None. Once."""
        device = self.find(code)
        own = next(key for key, value in self._waiting.items() if value is device)
        self._waiting[own] = replace(device, answer="denied" if secret is None else "allowed", secret=secret)

    def collect(self, own: str) -> Device:
        """What was answered. An answer is given once; while there is none the program asks again."""
        self._forget_old()
        device = self._waiting.get(own)
        if device is None:
            raise FreeholdError("device.not-found", "This request is over", hint="Start again: freehold login")
        if device.answer != "waiting":
            del self._waiting[own]
        return device

    def _forget_old(self) -> None:
        oldest = self._clock() - LIFETIME
        for own in [own for own, device in self._waiting.items() if device.created < oldest]:
            del self._waiting[own]
