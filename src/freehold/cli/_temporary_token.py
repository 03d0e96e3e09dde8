"""A token for as long as a verb runs: the owner's shell needs no sign-in, for it can open the database itself."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.identity.tokens import Scope, Tokens

LIFE = 120.0
"""Seconds that a token is good for when the verb that holds it is killed and can end it no more."""


@contextmanager
def lent_token(tokens: "Tokens", verb: str, *scopes: "Scope", life: float = LIFE) -> Iterator[str]:
    """The secret; renewed by a thread for as long as the block lasts, and ended with it."""
    _clear_away(tokens, f"{verb}-")
    name = f"{verb}-{secrets.token_hex(4)}"
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


def _renew(tokens: "Tokens", name: str, life: float, over: threading.Event) -> None:
    """By the clock on the wall, and often looked at: a laptop may sleep through its token's end."""
    until = time.time() + life
    while not over.wait(life / 24):
        if until - time.time() < life / 2:
            until = time.time() + life
            if not tokens.renew(name, until):
                return  # the owner has ended it: it stays ended


def _clear_away(tokens: "Tokens", start: str) -> None:
    """Those whose verb was killed; they open nothing any more, and need not be listed for ever."""
    for token in tokens.list():
        if token.name.startswith(start) and token.expires is not None and token.expires < time.time():
            tokens.revoke(token.name)
