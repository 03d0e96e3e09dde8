"""A hostile agent with every host tool of the slots: it neither sees nor changes what belongs to another agent."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.agents.tools.test_bead_tools import no_secret
from tests.agents.tools.test_event_tools import Asked
from tests.support.scripted_runs import Neighbour, ScriptedRuns, running_neighbour

from freehold.agents.tools.beads import make_bead_tools
from freehold.agents.tools.events import make_event_tools
from freehold.agents.tools.memory import SessionFacts, introduce_session, make_memory_tools
from freehold.agents.tools.pods import make_pod_tools
from freehold.agents.tools.runs import make_run_tools
from freehold.agents.tools.tool import HostTool, ToolCaller
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller
from freehold.slots.contract import SLOT_NAMES, SlotName
from freehold.slots.host import EngineBox, SlotPlace, make_slot
from freehold.slots.memory.contract import ExportMemories, MemoryOrigin, StoreMemory
from freehold.slots.orchestrator.contract import ListRuns, RunChange, RunEvent, SpawnRun
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport
from freehold.slots.pods.contract import CreateFolder, ExportPods, GrantAccess, PutDocument
from freehold.timeline import Timeline

OWNER, CODEX = SlotCaller("owner"), SlotCaller("session:victim", "codex")
MARK = "zircon-4417"
"""In everything that belongs to somebody else. The agent knows the word, and is told nothing about it."""
PATHS = (
    "private/x.txt",
    "private",
    "private/",
    "/private/x.txt",
    "own/../private/x.txt",
    "own/..%2fprivate/x.txt",
    "own//../private/x.txt",
    "own/./../private/x.txt",
    "own/link/x.txt",
    "Private/x.txt",
    "private/x.txt\0.md",
    "private\\x.txt",
    "own\\..\\private\\x.txt",
    "private/x.txt$.txt",
    ".freehold-x",
    "~/private/x.txt",
    "ownx/x.txt",
    "\uff0e\uff0e/private/x.txt",
    "",
    "/",
)
NAMESPACES = (
    "agent:codex",
    "AGENT:codex",
    "agent:Codex",
    "agent:%",
    "agent:_odex",
    "agent:codex' OR '1'='1",
    "agent:*",
    "*",
    "own",
    "shared",
    "project:codex",
)


async def find_facts(session: str) -> SessionFacts:
    assert session == "hostile"
    return SessionFacts(agent="claude", turn=1, read="agent")


@pytest.fixture
def runs() -> ScriptedRuns:
    return ScriptedRuns()


@pytest.fixture
async def slots(tmp_path: Path, runs: ScriptedRuns) -> AsyncIterator[dict[SlotName, Slot]]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        place = SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {}, engine=EngineBox(runs))
        found = {name: make_slot(name, SlotSection(mode="local"), place) for name in SLOT_NAMES}
        for slot in found.values():
            await slot.connect()
        yield found
        for slot in found.values():
            await slot.close()


async def fill(slots: dict[SlotName, Slot], runs: ScriptedRuns, tmp_path: Path) -> list[str]:
    """What belongs to codex and to the owner. Returns the ids."""
    memory = await slots["memory"].call(
        StoreMemory(f"The code is {MARK}", "agent:codex", MemoryOrigin("agent", None, None, MARK)), CODEX
    )
    pinned = await slots["memory"].call(StoreMemory(f"Pinned {MARK}", "agent:codex", pinned=True), OWNER)
    for folder in ("private", "ownx"):
        await slots["pods"].call(PutDocument(f"{folder}/x.txt", "text/plain", MARK), OWNER)
        await slots["pods"].call(GrantAccess("codex", folder, "write"), OWNER)
    await slots["pods"].call(CreateFolder("own"), OWNER)
    await slots["pods"].call(GrantAccess("claude", "own", "write"), OWNER)
    (tmp_path / "pods" / "own" / "link").symlink_to("../private")
    run = await slots["orchestrator"].call(SpawnRun(f"Say {MARK}", title=MARK), CODEX)
    runs.events[run.session] = [RunEvent(1, "t", "message", {"text": MARK})]
    runs.changes[run.id] = (RunChange(f"{MARK}.py", "added", 1, None, False),)
    await runs.tell(run.id, ChildReport(changes=ChangeCounts(added=1)))
    await runs.tell(run.id, ChildReport(state="done"))
    return [memory.id, pinned.id, run.id, run.session, "victim"]


def attempts(tool: HostTool, ids: list[str]) -> Iterator[dict[str, Any]]:
    """Calls with the names of foreign things, wherever a name can stand."""
    choices: dict[str, tuple[Any, ...]] = {
        "id": (*ids, "%", "*", "' OR 1=1 --"),
        "path": PATHS,
        "folder": PATHS,
        "namespace": NAMESPACES,
        "question": (MARK, f"What is {MARK}?"),
        "media": ("*/*", "text/plain"),
        "mine": (False, True),
        "tasks": (["x"],),
        "seconds": (0,),
        "type": ("com.example.told",),
    }
    names = [name for name in tool.properties if name in choices or name in tool.required]
    for values in product(*(choices.get(name, ("x",)) for name in names)):
        given = dict(zip(names, values, strict=True))
        yield given
        yield {name: value for name, value in given.items() if name in tool.required}


async def test_no_host_tool_shows_or_changes_what_belongs_to_another_agent(
    slots: dict[SlotName, Slot], runs: ScriptedRuns, tmp_path: Path
) -> None:
    ids = await fill(slots, runs, tmp_path)

    async def state() -> tuple[object, ...]:
        memories = (await slots["memory"].call(ExportMemories(), OWNER)).records
        documents = (await slots["pods"].call(ExportPods(), OWNER)).records
        found = (await slots["orchestrator"].call(ListRuns(), OWNER)).runs
        # When it was used counts too: an agent that was given a memory leaves that trace.
        return (
            [one for one in memories if one["namespace"] == "agent:codex"],
            [one for one in documents if not str(one["id"]).startswith("own/")],
            found,
            (runs.ended, runs.merged, runs.dropped),
        )

    before = await state()
    asked = Asked("reject")
    tools = [
        *make_memory_tools(slots["memory"], find_facts),
        *make_pod_tools(slots["pods"], find_facts),
        *make_run_tools(slots["orchestrator"]),
        *make_event_tools(slots["events"]),
        *make_bead_tools(slots["beads"]),
    ]
    tried = refused = 0
    for tool in tools:
        for given in attempts(tool, ids):
            tried += 1
            try:
                answer = str(await tool.call(ToolCaller("hostile", asked.ask), tool.check(given)))
            except FreeholdError as error:
                refused += 1
                answer = f"{error.message} {error.hint}"
            # It may be told its own words, never those of others.
            for own in given.values():
                answer = answer.replace(str(own), "")
            assert MARK not in answer, (tool.name, given)
    assert len(tools) > 15
    assert tried > refused > 300
    assert MARK not in str(asked.seen)
    assert MARK not in await introduce_session(slots["memory"], "hostile", "claude")
    assert await state() == before
    assert (tmp_path / "pods" / "private" / "x.txt").read_text() == MARK


@pytest.fixture
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbour]:
    with running_neighbour(tmp_path_factory.mktemp("neighbour")) as found:
        yield found


async def test_no_host_tool_reaches_a_run_of_another_agent_at_another_freehold(
    neighbour: Neighbour, tmp_path: Path
) -> None:
    there = neighbour.services.slots.engine.engine
    assert isinstance(there, ScriptedRuns)
    settings = {"url": neighbour.url, "token": "env:T"}
    with Timeline(tmp_path / "timeline.db") as timeline:
        place = SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {"T": neighbour.token})
        slot = make_slot("orchestrator", SlotSection(mode="external", settings=settings), place)
        await slot.connect()
        ids = []
        for caller in (CODEX, OWNER):
            run = await slot.call(SpawnRun(f"Say {MARK}", title=MARK), caller)
            there.events[run.session] = [RunEvent(1, "t", "message", {"text": MARK})]
            there.changes[run.id] = (RunChange(f"{MARK}.py", "added", 1, None, False),)
            done = there.tell(run.id, ChildReport(state="done", changes=ChangeCounts(added=1)))
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done, neighbour.loop))
            ids += [run.id, run.session]
        before = (await slot.call(ListRuns(), OWNER)).runs
        asked = Asked("reject")
        for tool in make_run_tools(slot):
            for given in attempts(tool, ids):
                try:
                    answer = str(await tool.call(ToolCaller("hostile", asked.ask), tool.check(given)))
                except FreeholdError as error:
                    answer = f"{error.message} {error.hint}"
                assert MARK not in answer, (tool.name, given)
        assert MARK not in str(asked.seen)
        assert (await slot.call(ListRuns(), OWNER)).runs == before
        assert (there.ended, there.merged, there.dropped) == ([], [], [])
        await slot.close()
