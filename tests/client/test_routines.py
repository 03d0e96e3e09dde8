"""Routines through the Python client, async and sync."""

import asyncio
from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway
from tests.support.condition import until

from freehold.client import Freehold
from freehold.errors import FreeholdError


async def test_a_program_adds_runs_pauses_and_removes_a_routine(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        secret = gateway.token("routines", "terminal", "admin")["authorization"].removeprefix("Bearer ")
        async with Freehold(gateway.url, token=secret) as home:
            spec = {"webhook": True, "command": "true"}
            assert (await home.routines.add("hook", spec)).settings == spec
            with pytest.raises(FreeholdError) as caught:
                await home.routines.add("hook", spec)
            assert caught.value.code == "routine.exists"
            assert (await home.routines.add("hook", {**spec, "retries": 1}, replace=True)).settings["retries"] == 1
            assert len((await home.routines.plan({"every": "1h", "prompt": "x"}, count=3)).times) == 3
            run = await home.routines.run("hook", "hello")
            assert run.data == {"text": "hello"}

            async def is_tried() -> bool:
                return (await home.routines.get_run("hook", run.id)).attempt == 2

            await until(is_tried)
            assert (await home.routines.stop_run("hook", run.id)).state == "cancelled"
            assert [one.id for one in (await home.routines.runs("hook", limit=5)).runs] == [run.id]
            assert (await home.routines.get("hook")).recent[0].state == "cancelled"
            assert (await home.routines.pause("hook")).state == "paused"
            assert (await home.routines.resume("hook")).state == "on"
            assert (await home.routines.create_webhook("hook")).secret.startswith("whsec_")

        def use_sync() -> list[str]:
            with Freehold.sync(gateway.url, token=secret) as home:
                names = [one.name for one in home.routines.list(after="a").routines]
                home.routines.remove("hook")
                return names + [one.name for one in home.routines.list().routines]

        assert await asyncio.to_thread(use_sync) == ["hook"]
