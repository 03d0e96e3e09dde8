"""The temporary token of a command: renewed while the command runs, then revoked, and never restored."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freehold.cli._temporary_token import temporary_token
from freehold.identity.tokens import ApiTokens


@pytest.fixture
def tokens(tmp_path: Path) -> ApiTokens:
    return ApiTokens(tmp_path / "identity.db")


def _until(done: Callable[[], bool]) -> None:
    """Wait for another thread."""
    turn = threading.Event()
    for _ in range(3000):
        if done():
            return
        turn.wait(0.01)
    raise AssertionError("It did not happen")


def test_it_is_renewed_while_the_block_runs_and_then_revoked(tokens: ApiTokens) -> None:
    with temporary_token(tokens, "chat", "read", life=4.0) as secret:
        (first,) = tokens.list()
        _until(lambda: (tokens.list()[0].expires or 0) > (first.expires or 0))
        assert tokens.verify(secret) is not None
    assert tokens.list() == []
    assert tokens.verify(secret) is None


def test_a_token_that_the_owner_revokes_stays_revoked(tokens: ApiTokens) -> None:
    with temporary_token(tokens, "chat", "read", life=0.2) as secret:
        tokens.revoke(tokens.list()[0].name)
        _until(lambda: "token" not in [thread.name for thread in threading.enumerate()])
        assert tokens.verify(secret) is None
        assert tokens.list() == []


def test_expired_tokens_of_the_same_command_are_removed_and_no_others(tokens: ApiTokens, tmp_path: Path) -> None:
    past = time.time() - 60
    with ApiTokens(tmp_path / "identity.db", clock=lambda: past - 60) as before:
        before.create("chat-dead", ["read"], past)
        before.create("other-dead", ["read"], past)
    tokens.create("chat-alive", ["read"], None)
    with temporary_token(tokens, "chat", "read"):
        names = [token.name for token in tokens.list()]
        assert "chat-dead" not in names
        assert {"other-dead", "chat-alive"} <= set(names)
