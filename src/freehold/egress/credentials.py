"""Proxy credentials: they tell egress which session a connection belongs to.

The agent of each session gets its own user name and password in `HTTP_PROXY`. Programs without credentials belong to
no session and use only the rules that hold for everyone.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from freehold.computer.contract.conventions import EGRESS_PORT, LOOPBACK
from freehold.egress.http1 import HttpRequest, malformed
from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.private_file import make_private_file, read_private_file

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
NONCE_BYTES = 12
KEY_BYTES = 32


class ProxyCredentials:
    """Issues and checks the credentials of sessions.

    A password is an HMAC over the session and a nonce, so only this host can make one. Only the newest password of a
    session counts, until `revoke`. A genuine password that no longer counts belongs to no session: a server that an
    agent left running keeps the network access that everyone has.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or os.urandom(KEY_BYTES)
        self._current: dict[str, str] = {}

    def issue(self, session: str) -> str:
        """The password of a session. The same until `revoke`."""
        if session not in self._current:
            nonce = secrets.token_urlsafe(NONCE_BYTES)
            self._current[session] = f"{nonce}.{self._sign(session, nonce)}"
        return self._current[session]

    def revoke(self, session: str) -> None:
        """From now on the password of this session belongs to no session. Idempotent."""
        self._current.pop(session, None)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions whose password counts."""
        return frozenset(self._current)

    def environment(self, session: str) -> dict[str, str | None]:
        """The variables that send the programs of a session through the proxy with its credentials."""
        url = f"http://{session}:{self.issue(session)}@{LOOPBACK}:{EGRESS_PORT}"
        # By default git waits to be asked for credentials, and this proxy never asks.
        return {**dict.fromkeys(PROXY_VARIABLES, url), "GIT_HTTP_PROXY_AUTHMETHOD": "basic"}

    def find_session(self, request: HttpRequest) -> str | None:
        """The session that sent this request; None without credentials or with those of an agent that has ended.

        Raises `egress.malformed` for two `Proxy-Authorization` fields and `egress.bad-credentials` for wrong ones.
        """
        fields = request.values("proxy-authorization")
        if not fields:
            return None
        if len(fields) > 1:
            raise malformed("it has more than one Proxy-Authorization field")
        session, password = _decode_basic(fields[0])
        nonce, _, signature = password.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(session, nonce).encode()):
            raise bad_credentials("they are not those of a session")
        return session if self._current.get(session) == password else None

    def _sign(self, session: str, nonce: str) -> str:
        digest = hmac.digest(self._key, f"{session}\0{nonce}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def read_credentials_key(folder: Path) -> bytes:
    """The key that signs credentials, made on first use. It outlives restarts, so that old passwords stay genuine."""
    path = folder / "proxy.key"
    ensure_private_folder(folder)
    if not path.exists():
        make_private_file(path, os.urandom(KEY_BYTES))
    key = read_private_file(path, code="egress.key", remedy=f"If nobody else could have read it: chmod 600 {path}")
    if len(key) != KEY_BYTES:
        raise FreeholdError(
            "egress.key-damaged",
            f"{path} is not a key of {KEY_BYTES} bytes",
            hint=f"Remove {path}; a new one is made, and running agents must be started again",
        )
    return key


def bad_credentials(why: str) -> FreeholdError:
    return FreeholdError(
        "egress.bad-credentials",
        f"The proxy credentials are wrong: {why}",
        hint="Use HTTP_PROXY as it was set for this program, or no credentials",
    )


def _decode_basic(value: str) -> tuple[str, str]:
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        raise bad_credentials("the scheme must be Basic")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise bad_credentials("they are not valid Base64") from error
    session, _, password = text.partition(":")
    return session, password
