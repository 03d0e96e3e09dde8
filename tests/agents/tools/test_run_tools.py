"""The host tools of runs: the owner sees all tasks before they begin, and all changes before they are merged."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.tools.test_bead_tools import no_secret
from tests.agents.tools.test_event_tools import Asked
from tests.support.scripted_runs import ScriptedRuns

from freehold.agents.tools.runs import make_run_tools
from freehold.agents.tools.tool import ToolCaller
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot
from freehold.slots.host import EngineBox, SlotPlace, make_slot
from freehold.slots.orchestrator.contract import PERMISSION_WORDS, PERMISSIONS, RunChange, RunEvent
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport
from freehold.timeline import Timeline


@pytest.fixture
def runs() -> ScriptedRuns:
    return ScriptedRuns()


@pytest.fixture
async def slot(tmp_path: Path, runs: ScriptedRuns) -> AsyncIterator[Slot]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        place = SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {}, engine=EngineBox(runs))
        slot = make_slot("orchestrator", SlotSection(mode="local"), place)
        await slot.connect()
        yield slot
        await slot.close()


async def use(slot: Slot, name: str, session: str, asked: Asked | None = None, **given: object) -> str:
    (tool,) = [one for one in make_run_tools(slot) if one.name == name]
    answer = await tool.call(ToolCaller(session, (asked or Asked("reject")).ask), tool.check(given))
    assert isinstance(answer, str)
    return answer


async def test_agents_begin_after_the_owner_has_seen_every_task(slot: Slot, runs: ScriptedRuns) -> None:
    tasks = ["Write tests", "Write docs"]
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, "runs_spawn", "a", Asked("reject"), tasks=tasks)
    assert runs.children == {}
    asked = Asked("once")
    shown = await use(slot, "runs_spawn", "a", asked, tasks=tasks, folder="site", budget_cents=50)
    assert all(task in str(asked.seen[0]) for task in [*tasks, "a copy of site", "0.50"])
    assert len(shown.splitlines()) == len(runs.children) == 2
    assert {child.folder for child, _, _ in runs.children.values()} == {"site"}
    with pytest.raises(FreeholdError):
        await use(slot, "runs_spawn", "a", Asked("once"), tasks=["x"] * 6)


async def test_changes_are_merged_after_the_owner_has_seen_them(slot: Slot, runs: ScriptedRuns) -> None:
    await use(slot, "runs_spawn", "a", Asked("once"), tasks=["Write tests"])
    ((run, (child, _, _)),) = runs.children.items()
    runs.events[child.session] = [RunEvent(1, "t", "message", {"text": "All tests pass"})]
    runs.changes[run] = (RunChange("tests/a.py", "added", 1, None, False),)
    await runs.tell(run, ChildReport(changes=ChangeCounts(added=1)))
    await runs.tell(run, ChildReport(state="done"))
    assert "All tests pass" in await use(slot, "runs_wait", "a", id=run, seconds=5)
    assert "tests/a.py" in await use(slot, "runs_changes", "a", id=run)
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, "runs_merge", "a", Asked("reject"), id=run)
    assert runs.merged == []
    with pytest.raises(FreeholdError, match="no run"):
        await use(slot, "runs_merge", "b", Asked("once"), id=run)
    asked = Asked("once")
    assert "merged" in await use(slot, "runs_merge", "a", asked, id=run)
    assert "tests/a.py" in str(asked.seen[0])
    assert run in await use(slot, "runs_list", "a")
    assert "no runs" in await use(slot, "runs_list", "b")


async def test_a_run_is_ended_and_its_changes_dropped(slot: Slot, runs: ScriptedRuns) -> None:
    await use(slot, "runs_spawn", "a", Asked("once"), tasks=["Write tests"])
    (run,) = runs.children
    await use(slot, "runs_stop", "a", id=run)
    assert runs.ended == [run]
    await runs.tell(run, ChildReport(state="ended", changes=ChangeCounts(added=1)))
    assert "dropped" in await use(slot, "runs_drop", "a", id=run)


async def test_a_run_that_works_on_is_not_merged_by_an_answer_to_an_empty_question(
    slot: Slot, runs: ScriptedRuns
) -> None:
    await use(slot, "runs_spawn", "a", Asked("once"), tasks=["Write tests"])
    (run,) = runs.children
    asked = Asked("once")
    with pytest.raises(FreeholdError, match="has not finished"):
        await use(slot, "runs_merge", "a", asked, id=run)
    await runs.tell(run, ChildReport(state="done", changes=ChangeCounts()))
    with pytest.raises(FreeholdError, match="no changes that wait"):
        await use(slot, "runs_merge", "a", asked, id=run)
    assert asked.seen == []
    assert runs.merged == []


async def test_a_question_about_changes_names_links_programs_and_files_that_run_by_themselves(
    slot: Slot, runs: ScriptedRuns
) -> None:
    await use(slot, "runs_spawn", "a", Asked("once"), tasks=["Write tests"])
    (run,) = runs.children
    runs.changes[run] = (
        RunChange("plain.txt", "added", 1, "+x", False, 0o100644),
        RunChange("link", "added", 11, "+/etc/passwd", False, 0o120777, "/etc/passwd"),
        RunChange(".git/hooks/pre-commit", "added", 3, "+x", False, 0o100755, None, "git runs it at a commit"),
    )
    await runs.tell(run, ChildReport(state="done", changes=ChangeCounts(added=3)))
    asked = Asked("reject")
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, "runs_merge", "a", asked, id=run)
    told = str(asked.seen[0])
    first = told.index("LOOK AT THESE FIRST")
    assert first < told.index("link: a link to /etc/passwd") < told.index("plain.txt")
    assert ".git/hooks/pre-commit: a program (mode 755), runs by itself: git runs it at a commit" in told
    assert "plain.txt:" not in told
    shown = await use(slot, "runs_changes", "a", id=run)
    assert "added link (11 bytes)  [a link to /etc/passwd]" in shown


async def test_the_question_says_as_whom_runs_act_what_they_may_cost_and_what_they_may_do(
    slot: Slot, runs: ScriptedRuns
) -> None:
    asked = Asked("once")
    await use(slot, "runs_spawn", "a", asked, tasks=["x"], agent="codex")
    await use(slot, "runs_spawn", "a", asked, tasks=["x"], budget_cents=50, permissions=["memory", "runs"])
    first, second = (one.parts[0].text for one in asked.seen)
    assert "Each acts as the agent codex. Of pods and memories it reaches what is granted both to it and" in first
    assert "THERE IS NO BUDGET" in first
    assert f"each may: {'; '.join(PERMISSION_WORDS.values())}." in first
    assert "may NOT" not in first
    assert "What they ask is answered with no" in second
    assert "each may: remember and recall; begin runs." in second
    assert "Each may NOT: ask the owner; use the network by the owner's rules; use personal documents" in second
    assert "NO BUDGET" not in second
    assert [child.permissions for child, _, _ in runs.children.values()] == [PERMISSIONS, ("memory", "runs")]


async def test_a_run_cannot_let_another_do_more_than_itself(slot: Slot, runs: ScriptedRuns) -> None:
    asked = Asked("once")
    await use(slot, "runs_spawn", "a", asked, tasks=["x"], permissions=["memory", "runs"])
    ((child, _, _),) = runs.children.values()
    (tool,) = [one for one in make_run_tools(slot, lambda _: frozenset(child.permissions)) if one.name == "runs_spawn"]
    caller = ToolCaller(child.session, asked.ask)
    for beyond in (["network"], ["memory", "pods"], ["ask"], ["x"]):
        with pytest.raises(FreeholdError):
            await tool.call(caller, tool.check({"tasks": ["y"], "permissions": beyond}))
    # Nobody was asked what cannot be.
    assert len(asked.seen) == 1
    await tool.call(caller, {"tasks": ["y"]})
    assert [one.permissions for one, _, _ in runs.children.values()] == [("memory", "runs")] * 2
    assert "Each may NOT: ask the owner" in asked.seen[1].parts[0].text


async def test_the_question_says_that_an_older_state_is_copied(slot: Slot, runs: ScriptedRuns) -> None:
    runs.states = {("site", 3)}
    asked = Asked("once")
    await use(slot, "runs_spawn", "a", asked, tasks=["x"], folder="site", entry=3)
    await use(slot, "runs_spawn", "a", asked, tasks=["x"], folder="site")
    first, second = asked.seen
    assert "THE COPY IS OF AN OLDER STATE, entry 3: it can hold what you have deleted since." in first.parts[0].text
    assert "OLDER STATE" not in second.parts[0].text
    assert [one.details["scope"] for one in asked.seen] == ["orchestrator history", "orchestrator"]
    # A yes to one of them is none to the other, and no rule covers either.
    assert first.digest != second.digest
    assert first.subjects == ()
    assert [child.entry for child, _, _ in runs.children.values()] == [3, None]


async def test_nobody_is_asked_for_an_older_state_that_cannot_be_given(slot: Slot, runs: ScriptedRuns) -> None:
    asked = Asked("once")
    for wrong in ({"entry": 0}, {"entry": -1}, {"entry": 2**60}, {"entry": "../1"}, {"entry": True}):
        with pytest.raises(FreeholdError):
            await use(slot, "runs_spawn", "a", asked, tasks=["x"], folder="site", **wrong)
    with pytest.raises(FreeholdError, match="without a folder"):
        await use(slot, "runs_spawn", "a", asked, tasks=["x"], entry=3)
    (tool,) = [one for one in make_run_tools(slot, lambda _: frozenset({"runs", "ask"})) if one.name == "runs_spawn"]
    with pytest.raises(FreeholdError, match="the permission history is needed"):
        await tool.call(ToolCaller("a", asked.ask), tool.check({"tasks": ["x"], "folder": "site", "entry": 3}))
    assert (asked.seen, runs.children) == ([], {})
    with pytest.raises(FreeholdError, match="no entry 3"):
        await use(slot, "runs_spawn", "a", asked, tasks=["x"], folder="site", entry=3)
    assert runs.opened == 0


async def test_a_question_that_cannot_show_all_changes_says_so_first(slot: Slot, runs: ScriptedRuns) -> None:
    await use(slot, "runs_spawn", "a", Asked("once"), tasks=["Write tests"])
    (run,) = runs.children
    long = "+" + "x" * 70_000
    runs.changes[run] = (RunChange("a.py", "added", 1, None, False), RunChange("b.py", "added", 1, long, False))
    await runs.tell(run, ChildReport(state="done", changes=ChangeCounts(added=302)))
    asked = Asked("reject")
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, "runs_merge", "a", asked, id=run)
    told = str(asked.seen[0])
    facts = "300 of 302 files are not listed; the content of 1 files is not shown; the rest is cut off"
    assert f"NOT EVERYTHING IS SHOWN HERE: {facts}" in told
