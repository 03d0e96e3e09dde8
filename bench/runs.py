"""How long does the orchestrator take to accept a run, and to pass on what its agent says? Without the agent's own time."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tests.support.scripted_runs import ScriptedRuns

from bench.harness import Figure, main
from bench.slots import OWNER, no_secret, p95, time_calls
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots.host import EngineBox, SlotPlace, make_slot
from freehold.slots.orchestrator.contract import ReadRun, Run, RunEvent, SpawnRun
from freehold.slots.orchestrator.engine import ChildReport
from freehold.timeline import Timeline

SPAWN_AIM, STREAM_AIM = 100.0, 5.0
"""Milliseconds at the 95th percentile."""


async def measure_local(place: SlotPlace, engine: ScriptedRuns, quick: bool) -> AsyncIterator[Figure]:
    """No agent works: what is measured is the slot. The computer and the agent of a run start after it is accepted."""
    slot = make_slot("orchestrator", SlotSection(mode="local"), place)
    await slot.connect()
    times = 100 if quick else 500
    runs: list[Run] = []

    async def spawn(_: int) -> None:
        runs.append(await slot.call(SpawnRun("Do it"), OWNER))

    spawned: list[float] = []
    for _ in range(times):
        spawned += await time_calls(spawn, 1)
        await engine.tell(runs[-1].id, ChildReport(state="done"))
    found = p95(spawned)
    yield Figure("spawn, accepted, p95", found, "ms", "", None, f"at most {SPAWN_AIM:g} ms", found <= SPAWN_AIM)
    engine.events[runs[0].session] = [RunEvent(n, "t", "message", {"text": "x" * 200}) for n in range(1, times + 1)]
    read = p95(await time_calls(lambda n: slot.call(ReadRun(runs[0].id, n, 1), OWNER), times))
    yield Figure("stream, next event, p95", read, "ms", "", None, f"at most {STREAM_AIM:g} ms", read <= STREAM_AIM)
    await slot.close()


def measure(quick: bool) -> list[Figure]:
    async def run() -> list[Figure]:
        engine = ScriptedRuns()
        with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
            home = Home(Path(folder), Path(folder))
            place = SlotPlace(home, timeline, no_secret, {}, engine=EngineBox(engine))
            return [figure async for figure in measure_local(place, engine, quick)]

    return asyncio.run(run())


if __name__ == "__main__":
    main(__doc__ or "", measure)
