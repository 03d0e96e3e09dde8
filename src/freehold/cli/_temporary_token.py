"""A token that lasts as long as a command. The owner's shell can open the database itself and needs no sign-in."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.identity.tokens import ApiTokens, Scope

TOKEN_LIFETIME = 120.0
"""Seconds until a token expires when its command was killed and could not revoke it."""


@contextmanager
def temporary_token(
    tokens: "ApiTokens", verb: str, *scopes: "Scope", life: float = TOKEN_LIFETIME, mark: str | None = None
) -> Iterator[str]:
    """Yield the secret. A thread renews the token while the block runs; at its end the token is revoked.

    With a `mark` the name is the same each time: whoever uses it is then the same caller. A token of that name that a
    killed command left is replaced.
    """
    _remove_expired(tokens, f"{verb}-")
    name = f"{verb}-{mark or secrets.token_hex(4)}"
    if mark is not None:
        tokens.revoke(name)
    _, secret = tokens.create(name, scopes, time.time() + life)
    over = threading.Event()
    renewing = threading.Thread(target=_renew, args=(tokens, name, life, over), name="token", daemon=True)
    renewing.start()
    try:
        yield secret
    finally:
        over.set()
        renewing.join()
        tokens.revoke(name)


def _renew(tokens: "ApiTokens", name: str, life: float, over: threading.Event) -> None:
    """Uses the wall clock and checks often, because a laptop may sleep until after the token has expired."""
    until = time.time() + life
    while not over.wait(life / 24):
        if until - time.time() < life / 2:
            until = time.time() + life
            if not tokens.renew(name, until):
                return  # The owner has revoked it. It stays revoked.


def _remove_expired(tokens: "ApiTokens", start: str) -> None:
    """Remove expired tokens of commands that were killed, so that they are not listed forever."""
    for token in tokens.list():
        if token.name.startswith(start) and token.expires is not None and token.expires < time.time():
            tokens.revoke(token.name)
