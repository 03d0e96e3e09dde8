"""Who may look: a one-time token hands a browser over to a preview, where a pass of its own takes its place.

A pass names the sign-in or API token that it came from and is worth nothing once that has ended. It is proved by a
MAC, so that it outlives a restart of the gateway; nobody else has the key, the app behind the preview least of all.
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from freehold.gateway.guard import Principal
from freehold.gateway.preview.hosts import Place
from freehold.home import Home, ensure_private_folder
from freehold.identity.sessions import Session, Sessions
from freehold.identity.tokens import Token, Tokens

COOKIE = "__Host-freehold-preview"
TOKEN_TTL = 30.0
MAX_TOKENS = 64
_PASS = re.compile(r"([st])([0-9a-f]{16})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Holder:
    """The living credential that a pass stands for: one of the two."""

    session: Session | None = None
    token: Token | None = None


@dataclass(frozen=True)
class _Token:
    place: Place
    kind: Literal["s", "t"]
    credential: str
    path: str
    expires: float


class Passes:
    def __init__(
        self, key: bytes, sessions: Sessions, tokens: Tokens, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._key = key
        self._sessions = sessions
        self._tokens = tokens
        self._clock = clock
        self._waiting: OrderedDict[bytes, _Token] = OrderedDict()

    def hand_over(self, principal: Principal, place: Place, path: str) -> str:
        """A token that opens this preview once, within half a minute. The oldest gives way when there are many."""
        if principal.session is not None:
            waiting = _Token(place, "s", principal.session.id, path, self._clock() + TOKEN_TTL)
        else:
            assert principal.token is not None  # the guard let nobody else through
            waiting = _Token(place, "t", principal.token.id, path, self._clock() + TOKEN_TTL)
        token = secrets.token_urlsafe(32)
        while len(self._waiting) >= MAX_TOKENS:
            self._waiting.popitem(last=False)
        self._waiting[_digest(token)] = waiting
        return token

    def redeem(self, token: str, place: Place) -> tuple[str, str] | None:
        """The pass for its cookie and the path to go on to. Whatever comes of it, the token is used up."""
        waiting = self._waiting.pop(_digest(token), None)
        if waiting is None or waiting.place != place or waiting.expires < self._clock():
            return None
        if self._find(waiting.kind, waiting.credential) is None:
            return None
        subject = f"{waiting.kind}{waiting.credential}"
        return f"{subject}.{self._prove(subject, place)}", waiting.path

    def holder(self, cookies: bytes, place: Place) -> Holder | None:
        """Whose pass is among the cookies. A page can plant more of that name; only a proven one counts."""
        for value in _values(cookies):
            found = _PASS.fullmatch(value)
            if found is None or not hmac.compare_digest(self._prove(f"{found[1]}{found[2]}", place), found[3]):
                continue
            return self._find("s" if found[1] == "s" else "t", found[2])
        return None

    def _prove(self, subject: str, place: Place) -> str:
        return hmac.digest(self._key, f"{subject}@{place.host}".encode(), "sha256").hex()

    def _find(self, kind: Literal["s", "t"], credential: str) -> Holder | None:
        if kind == "s":
            session = self._sessions.living(credential)
            return Holder(session=session) if session is not None and session.method != "recovery" else None
        token = self._tokens.living(credential)
        return Holder(token=token) if token is not None else None


def set_pass(value: str) -> str:
    """For Set-Cookie. `Partitioned` and `None`: the control center frames previews, and is another site on loopback.

    What SameSite would hold off is held off by `Partitioned` (another site's frame has other cookies) and by what
    `may_ask` looks at.
    """
    return f"{COOKIE}={value}; Path=/; Secure; HttpOnly; SameSite=None; Partitioned"


def read_key(home: Home) -> bytes:
    """The key of this Freehold, made when it is missing. Safe when two processes start at once."""
    ensure_private_folder(home.vault)
    path = home.vault / "preview.key"
    key = _read_private(path)
    if key is not None:
        return key
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(secrets.token_bytes(32))
    try:
        os.link(draft, path)
    except FileExistsError:
        if _read_private(path) is None:  # cut short or open to others: it proves nothing, and nothing is lost with it
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    key = _read_private(path)
    assert key is not None
    return key


def _read_private(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        key = file.read(33)
    return key if len(key) == 32 and found.st_uid == os.geteuid() and not found.st_mode & 0o077 else None


def _values(cookies: bytes) -> Iterator[str]:
    prefix = f"{COOKIE}=".encode()
    for part in cookies.split(b";"):
        part = part.strip()
        if part.startswith(prefix):
            yield part[len(prefix) :].decode("latin-1")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
