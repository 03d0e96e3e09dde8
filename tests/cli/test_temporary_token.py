"""A token that a verb holds: renewed while it lives, ended with it, and never brought back."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freehold.cli._lent import lent_token
from freehold.identity.tokens import Tokens


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "identity.db")


def _until(done: Callable[[], bool]) -> None:
    """Turns of another thread, as many as it needs."""
    turn = threading.Event()
    for _ in range(3000):
        if done():
            return
        turn.wait(0.01)
    raise AssertionError("it never came")


def test_it_is_renewed_for_as_long_as_the_block_lasts_and_then_ended(tokens: Tokens) -> None:
    with lent_token(tokens, "chat", "read", life=1.0) as secret:
        (first,) = tokens.list()
        _until(lambda: (tokens.list()[0].expires or 0) > (first.expires or 0))
        assert tokens.verify(secret) is not None
    assert tokens.list() == []
    assert tokens.verify(secret) is None


def test_one_that_the_owner_ends_stays_ended(tokens: Tokens) -> None:
    with lent_token(tokens, "chat", "read", life=0.2) as secret:
        tokens.revoke(tokens.list()[0].name)
        _until(lambda: "token" not in [thread.name for thread in threading.enumerate()])
        assert tokens.verify(secret) is None
        assert tokens.list() == []


def test_dead_ones_of_the_same_verb_are_cleared_away_and_no_others(tokens: Tokens) -> None:
    soon = time.time() + 0.01
    tokens.create("chat-dead", ["read"], soon)
    tokens.create("other-dead", ["read"], soon)
    tokens.create("chat-alive", ["read"], None)
    _until(lambda: time.time() > soon)
    with lent_token(tokens, "chat", "read"):
        names = [token.name for token in tokens.list()]
        assert "chat-dead" not in names
        assert {"other-dead", "chat-alive"} <= set(names)
