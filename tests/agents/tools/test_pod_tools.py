"""The host tools of personal data: an agent sees nothing until the owner lets it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agents.tools.test_bead_tools import no_secret
from tests.agents.tools.test_event_tools import Asked

from freehold.agents.tools.memory import SessionFacts
from freehold.agents.tools.pods import make_pod_tools
from freehold.agents.tools.tool import ToolCaller
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.pods.contract import ListAccess, PutDocument, RevokeAccess
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")


@pytest.fixture
async def slot(tmp_path: Path) -> AsyncIterator[Slot]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make_slot(
            "pods", SlotSection(mode="local"), SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {})
        )
        await slot.connect()
        yield slot
        await slot.close()


async def find_facts(session: str) -> SessionFacts:
    return SessionFacts(agent=f"agent-of-{session}", turn=1, read="agent")


async def use(slot: Slot, name: str, session: str, asked: Asked | None = None, **given: object) -> str:
    (tool,) = [one for one in make_pod_tools(slot, find_facts) if one.name == name]
    owner = asked or Asked("reject")
    answer = await tool.call(ToolCaller(session, owner.ask), tool.check(given))
    assert isinstance(answer, str)
    return answer


async def test_an_agent_asks_gets_a_folder_and_loses_it(slot: Slot) -> None:
    await slot.call(PutDocument("notes/a.txt", "text/plain", "words"), OWNER)
    assert "no access" in await use(slot, "pods_list", "a")
    with pytest.raises(FreeholdError, match="may not read"):
        await use(slot, "pods_read", "a", path="notes/a.txt")
    with pytest.raises(FreeholdError, match="said no"):
        await use(slot, "pods_request", "a", Asked("reject"), folder="notes", why="to help")
    asked = Asked("once")
    await use(slot, "pods_request", "a", asked, folder="notes", why="to help")
    assert "everything in notes/" in str(asked.seen[0])
    assert await use(slot, "pods_read", "a", path="notes/a.txt") == "words"
    assert "notes/a.txt" in await use(slot, "pods_list", "a", folder="notes")
    with pytest.raises(FreeholdError, match="may not write"):
        await use(slot, "pods_write", "a", path="notes/b.txt", content="x")
    await use(slot, "pods_request", "a", Asked("once"), folder="notes", write=True, why="to write")
    assert "Written" in await use(slot, "pods_write", "a", path="notes/b.txt", content="x")
    with pytest.raises(FreeholdError, match="may not read"):
        await use(slot, "pods_read", "b", path="notes/a.txt")
    await slot.call(RevokeAccess("agent-of-a", "notes/"), OWNER)
    with pytest.raises(FreeholdError, match="may not read"):
        await use(slot, "pods_read", "a", path="notes/a.txt")
    seen = (await slot.call(ListAccess(), OWNER)).entries
    assert {(one.agent, one.act) for one in seen} >= {("agent-of-a", "read"), ("agent-of-b", "refused")}


async def test_what_is_not_text_is_described(slot: Slot) -> None:
    await slot.call(PutDocument("pic.png", "image/png", "/wA=", "base64"), OWNER)
    await use(slot, "pods_request", "a", Asked("once"), folder="", why="all")
    assert await use(slot, "pods_read", "a", path="pic.png") == "It is not text: image/png, 2 bytes."
