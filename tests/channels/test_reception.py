"""What is done with a batch of messages, beside the messages themselves."""

import time
from pathlib import Path
from typing import cast

import pytest

from freehold.channels.contract import IncomingBatch, OwnerAddress, OwnerChannel
from freehold.channels.pairing import Pairing
from freehold.channels.received import ReceivedMessages
from freehold.channels.reception import ChannelReception, ReceptionHandlers
from freehold.channels.store import ChannelStore, set_owner
from freehold.timeline import Timeline


async def never(*_given: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("is_paired", [True, False])
async def test_the_owner_is_told_of_messages_that_were_not_read(tmp_path: Path, is_paired: bool) -> None:
    told: list[str] = []

    async def tell(_channel: str, _key: str, words: str) -> None:
        told.append(words)

    with Timeline(tmp_path / "timeline.db") as timeline:
        store = ChannelStore(timeline)
        store.prepare()
        store.add("m", "matrix", {}, who="test")
        if is_paired:
            with timeline.transaction() as tx:
                set_owner(tx, "m", OwnerAddress("@me:here", "!room"), time.time(), who="test")
        handlers = ReceptionHandlers(lambda _message: False, never, lambda: None, never, tell)
        reception = ChannelReception(
            store.get("m"), cast("OwnerChannel", None), store, ReceivedMessages(timeline), Pairing(timeline), handlers
        )
        await reception._take(IncomingBatch((), "first"))
        assert told == []
        await reception._take(IncomingBatch((), "second", is_cut=True))
        assert store.get("m").cursor == "second"
    assert told == ["Some of your messages were not read, because many came at once. Send them again."] * is_paired
