"""A busy machine may stop a process for seconds: what a search does by itself is not given up in these tests."""

import pytest

from freehold.slots import slot as slot_module
from freehold.slots.memory import store as memory_store


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "INLINE_TIMEOUT", 60.0)
    monkeypatch.setattr(slot_module, "CALL_TIMEOUT", 90.0)
