"""Access to previews: a browser opens a preview with a one-time token and gets a pass, a cookie of the preview's origin.

A pass names the sign-in or API token that it was made for, and is not valid after that has ended. A MAC proves it, so
that it stays valid after a restart of the gateway. The app behind the preview does not have the key.
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

from freehold.gateway.preview.hosts import PreviewSite
from freehold.gateway.principal import Principal
from freehold.home import Home, ensure_private_folder
from freehold.identity.sign_ins import SignIn, SignIns
from freehold.identity.tokens import ApiToken, ApiTokens

COOKIE = "__Host-freehold-preview"
TOKEN_TTL = 30.0
MAX_TOKENS = 64
_PASS = re.compile(r"([st])([0-9a-f]{16})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class PassHolder:
    """The valid credential of a pass: one of the two is set."""

    sign_in: SignIn | None = None
    token: ApiToken | None = None


@dataclass(frozen=True)
class _Token:
    site: PreviewSite
    kind: Literal["s", "t"]
    credential: str
    path: str
    expires: float


class PreviewPasses:
    def __init__(
        self, key: bytes, sign_ins: SignIns, tokens: ApiTokens, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._key = key
        self._sign_ins = sign_ins
        self._tokens = tokens
        self._clock = clock
        self._waiting: OrderedDict[bytes, _Token] = OrderedDict()
        self._opened: set[str] = set()

    def create_token(self, principal: Principal, site: PreviewSite, path: str) -> str:
        """A token that opens this preview once, within 30 seconds. The oldest token is dropped when there are too many."""
        if principal.sign_in is not None:
            waiting = _Token(site, "s", principal.sign_in.id, path, self._clock() + TOKEN_TTL)
        else:
            assert principal.token is not None  # the guard refuses other callers
            waiting = _Token(site, "t", principal.token.id, path, self._clock() + TOKEN_TTL)
        token = secrets.token_urlsafe(32)
        while len(self._waiting) >= MAX_TOKENS:
            self._waiting.popitem(last=False)
        self._waiting[_digest(token)] = waiting
        self._opened.add(site.host)  # there are no more than ports
        return token

    def was_opened(self, site: PreviewSite) -> bool:
        """Whether somebody who is signed in has opened this preview since the gateway started."""
        return site.host in self._opened

    def redeem_token(self, token: str, site: PreviewSite) -> tuple[str, str] | None:
        """The value of the pass cookie and the path to open; None for an invalid token. The token is used up either way."""
        waiting = self._waiting.pop(_digest(token), None)
        if waiting is None or waiting.site != site or waiting.expires < self._clock():
            return None
        if self._find(waiting.kind, waiting.credential) is None:
            return None
        subject = f"{waiting.kind}{waiting.credential}"
        return f"{subject}.{self._sign(subject, site)}", waiting.path

    def find_holder(self, cookies: bytes, site: PreviewSite) -> PassHolder | None:
        """The holder of the first valid pass among the cookies. A page can plant cookies of that name, so invalid ones are skipped."""
        for value in _values(cookies):
            found = _PASS.fullmatch(value)
            if found is None or not hmac.compare_digest(self._sign(f"{found[1]}{found[2]}", site), found[3]):
                continue
            return self._find("s" if found[1] == "s" else "t", found[2])
        return None

    def _sign(self, subject: str, site: PreviewSite) -> str:
        return hmac.digest(self._key, f"{subject}@{site.host}".encode(), "sha256").hex()

    def _find(self, kind: Literal["s", "t"], credential: str) -> PassHolder | None:
        if kind == "s":
            sign_in = self._sign_ins.find_active(credential)
            return PassHolder(sign_in=sign_in) if sign_in is not None and sign_in.method != "recovery" else None
        token = self._tokens.find_active(credential)
        return PassHolder(token=token) if token is not None else None


def format_pass_cookie(value: str) -> str:
    """The value for Set-Cookie. `SameSite=None`, because the control center that frames a preview is another site.

    `Partitioned` (a frame on another site has other cookies) and `is_allowed_source` protect instead of SameSite.
    """
    return f"{COOKIE}={value}; Path=/; Secure; HttpOnly; SameSite=None; Partitioned"


def read_key(home: Home) -> bytes:
    """The key for passes of this Freehold; created when it is missing. Safe when two processes start at once."""
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
        if _read_private(path) is None:  # incomplete or readable by others: replace it
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
