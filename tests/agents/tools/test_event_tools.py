"""The host tool of events: nothing is told to others before the owner has seen all of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.tools.test_bead_tools import no_secret

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.reach import Answer
from freehold.agents.tools.events import make_event_tools
from freehold.agents.tools.tool import HostTool, ToolCaller
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.contract import ReadEvents
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")


@pytest.fixture
async def slot(tmp_path: Path) -> AsyncIterator[Slot]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make_slot(
            "events", SlotSection(mode="local"), SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {})
        )
        await slot.connect()
        yield slot
        await slot.close()


class Asked:
    """An owner who gives one answer and remembers what was shown."""

    def __init__(self, answer: Answer) -> None:
        self.answer: Answer = answer
        self.seen: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.seen.append(request)
        return PermissionAnswer(self.answer, None)


async def use(slot: Slot, asked: Asked, **given: object) -> str:
    tool: HostTool
    (tool,) = make_event_tools(slot)
    answer = await tool.call(ToolCaller("s1", asked.ask), tool.check(given))
    assert isinstance(answer, str)
    return answer


async def test_an_event_is_published_in_the_name_of_the_session_after_the_owner_saw_it(slot: Slot) -> None:
    asked = Asked("once")
    await use(slot, asked, type="com.example.done", subject="report", data='{"secret": "words"}')
    assert "words" in str(asked.seen[0])
    (event,) = (await slot.call(ReadEvents(types=("com.example.done",)), OWNER)).events
    assert (event.actor, event.data) == ("session:s1", {"secret": "words"})


async def test_what_the_owner_rejects_is_not_told(slot: Slot) -> None:
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, Asked("reject"), type="com.example.done")
    assert (await slot.call(ReadEvents(), OWNER)).events == ()


@pytest.mark.parametrize("wrong", [{"type": "org.freehold.x.y"}, {"type": "com.x", "data": "[1]"}, {"type": "x y.z"}])
async def test_what_cannot_be_published_is_refused_before_the_owner_is_asked(slot: Slot, wrong: dict[str, str]) -> None:
    asked = Asked("once")
    with pytest.raises(FreeholdError):
        await use(slot, asked, **wrong)
    assert asked.seen == []


async def test_agents_get_no_tool_of_a_slot_that_is_off(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        place = SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {})
        assert make_event_tools(make_slot("events", SlotSection(mode="off"), place)) == []
