"""Freehold is ready only with the seal of a running keeper."""

from pathlib import Path

import pytest

from freehold.gateway.health import find_seal
from freehold.home import Home
from freehold.keeper.seal import Seal, write_seal


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path)


def test_the_seal_of_a_dead_keeper_is_void(home: Home) -> None:
    write_seal(home, Seal("b", "2026-01-01T00:00:00Z", ("computer",), 2**22 - 1, 1))
    assert find_seal(home) is None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b'{"since": "x"}'])
def test_an_unreadable_seal_counts_as_missing(home: Home, text: bytes) -> None:
    home.seal.write_bytes(text)
    assert find_seal(home) is None
