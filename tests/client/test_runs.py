"""Runs through the Python client, async and sync."""

import asyncio
from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway
from tests.support.scripted_runs import use_scripted_runs

from freehold.client import Freehold
from freehold.errors import FreeholdError
from freehold.slots.orchestrator.contract import RunChange, RunEvent
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport


async def test_a_program_begins_a_run_and_takes_its_changes(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, '[slots]\norchestrator = "local"\n') as gateway:
        runs = await use_scripted_runs(gateway)
        secret = gateway.token("orchestrator", "prompt", "files")["authorization"].removeprefix("Bearer ")
        async with Freehold(gateway.url, token=secret) as home:
            run = await home.runs.spawn("Do it", folder="site", budget=1.5, key="k")
            assert await home.runs.spawn("Do it", folder="site", budget=1.5, key="k") == run
            runs.events[run.session] = [RunEvent(n, "t", "message", {"text": str(n)}) for n in (1, 2)]
            runs.changes[run.id] = (RunChange("a", "added", 1, None, False),)
            await runs.tell(run.id, ChildReport(changes=ChangeCounts(added=1)))
            await runs.tell(run.id, ChildReport(state="done"))
            assert [event.data["text"] async for event in home.runs.stream(run.id)] == ["1", "2"]
            assert (await home.runs.get(run.id)).is_finished
            assert [one.path for one in (await home.runs.changes(run.id)).files] == ["a"]
            assert (await home.runs.take_changes(run.id, "drop")).outcome == "dropped"
            assert (await home.runs.stop(run.id)).state == "done"
            assert (await home.runs.list(active=True)).runs == ()
            with pytest.raises(FreeholdError) as refused:
                await home.runs.spawn("Do it", folder="site", entry=3)
            assert refused.value.code == "identity.wrong-scope"
            with pytest.raises(FreeholdError) as missing:
                await home.runs.get("none")
            assert missing.value.code == "orchestrator.not-found"

        def use_sync() -> list[str]:
            with Freehold.sync(gateway.url, token=secret) as home:
                return [one.id for one in home.runs.list().runs]

        assert await asyncio.to_thread(use_sync) == [run.id]
        runs.states = {("site", 3)}
        headers = gateway.token("orchestrator", "prompt", "history", name="older")
        secret = headers["authorization"].removeprefix("Bearer ")
        async with Freehold(gateway.url, token=secret) as home:
            older = await home.runs.spawn("Do it", folder="site", entry=3)
            assert (older.entry, runs.children[older.id][0].entry) == (3, 3)
            with pytest.raises(FreeholdError) as missing:
                await home.runs.spawn("Do it", folder="site", entry=4)
            assert (missing.value.code, missing.value.next_step) == ("orchestrator.not-found", "freehold log")
