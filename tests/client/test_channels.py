"""Channels through the Python client, async and sync."""

import asyncio

import pytest
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import until
from tests.support.telegram import OWNER, TOKEN, running_telegram

from freehold.client import Freehold
from freehold.errors import FreeholdError


async def test_a_program_adds_pairs_tries_and_removes_a_channel(gateway: RunningGateway) -> None:
    secret = gateway.token("admin")["authorization"].removeprefix("Bearer ")
    with running_telegram() as telegram:
        async with Freehold(gateway.url, token=secret) as home:
            with pytest.raises(FreeholdError, match="needs a secret"):
                await home.channels.add("telegram", {"api": telegram.url})
            with pytest.raises(FreeholdError, match="use https"):
                await home.channels.add("telegram", {"api": "http://example.com"}, secret=TOKEN)
            made = await home.channels.add("telegram", {"api": telegram.url}, name="phone", secret=TOKEN)
            assert (made.name, made.owner) == ("phone", None)
            await until(lambda: telegram.polls > 1)
            with pytest.raises(FreeholdError) as unpaired:
                await home.channels.test("phone")
            assert unpaired.value.code == "channels.not-paired.conflict"
            offer = await home.channels.pair("phone")
            telegram.say(str(offer.code))
            await until(lambda: telegram.sent)
            assert (await home.channels.test("phone")).sent
            changed = await home.channels.set_preferences("phone", tells=["failed"], batch=0, words=False)
            assert changed.preferences.tells == ("failed",)
            assert not changed.preferences.words

        def use_sync() -> list[str | None]:
            with Freehold.sync(gateway.url, token=secret) as home:
                owners = [one.owner for one in home.channels.list()]
                home.channels.remove("phone")
                return [*owners, *(one.owner for one in home.channels.list())]

        assert await asyncio.to_thread(use_sync) == [str(OWNER)]
