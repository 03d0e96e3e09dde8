"""The host tools of personal data: an agent sees nothing until the owner lets it."""

import asyncio
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
from freehold.slots.pods.contract import GetDocument, ListAccess, ListGrants, PutDocument, RevokeAccess
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
    asked = Asked("always")
    await use(slot, "pods_request", "a", asked, folder="notes", why="to help")
    assert "everything in notes/" in str(asked.seen[0])
    assert await use(slot, "pods_read", "a", path="notes/a.txt") == "words"
    assert "notes/a.txt" in await use(slot, "pods_list", "a", folder="notes")
    with pytest.raises(FreeholdError, match="may not write"):
        await use(slot, "pods_write", "a", path="notes/b.txt", content="x")
    await use(slot, "pods_request", "a", Asked("always"), folder="notes", write=True, why="to write")
    assert "Written" in await use(slot, "pods_write", "a", path="notes/b.txt", content="x")
    with pytest.raises(FreeholdError, match="may not read"):
        await use(slot, "pods_read", "b", path="notes/a.txt")
    await slot.call(RevokeAccess("agent-of-a", "notes/"), OWNER)
    with pytest.raises(FreeholdError, match="may not read"):
        await use(slot, "pods_read", "a", path="notes/a.txt")
    seen = (await slot.call(ListAccess(), OWNER)).entries
    assert {(one.agent, one.act) for one in seen} >= {("agent-of-a", "read"), ("agent-of-b", "refused")}


async def test_once_is_for_one_call_and_leaves_no_grant(slot: Slot) -> None:
    await slot.call(PutDocument("notes/a.txt", "text/plain", "words"), OWNER)
    asked = Asked("once")
    assert "one call" in await use(slot, "pods_request", "a", asked, folder="notes", why="github.com:443")
    text = asked.seen[0].parts[0].text
    # The words of the agent are not the first: a page reads the name of a host there.
    assert text.startswith("agent-of-a asks to read notes/:\ngithub.com:443\n")
    assert "\nOnce: one call in notes/" in text
    assert "notes/  read, for one call" in await use(slot, "pods_list", "a")
    for refused in ("b", "a2"):
        with pytest.raises(FreeholdError, match="may not read"):
            await use(slot, "pods_read", refused, path="notes/a.txt")
    assert await use(slot, "pods_read", "a", path="notes/a.txt") == "words"
    for again in ("pods_read", "pods_read"):
        with pytest.raises(FreeholdError, match="may not read"):
            await use(slot, again, "a", path="notes/a.txt")
    assert (await slot.call(ListGrants(), OWNER)).grants == ()
    # Of many calls at the same time, one has it.
    await use(slot, "pods_request", "a", Asked("once"), folder="notes", why="again")
    calls = [use(slot, "pods_read", "a", path="notes/a.txt") for _ in range(8)]
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert found.count("words") == 1
    assert sum(isinstance(one, FreeholdError) for one in found) == 7


async def test_this_conversation_is_no_other_one_and_can_be_revoked(slot: Slot) -> None:
    await slot.call(PutDocument("notes/a.txt", "text/plain", "words"), OWNER)
    for _ in range(2):
        await use(slot, "pods_request", "a", Asked("conversation"), folder="notes", why="to help")
        for _ in range(2):
            assert await use(slot, "pods_read", "a", path="notes/a.txt") == "words"
        # The same agent in another conversation.
        other = SlotCaller("session:other", "agent-of-a")
        with pytest.raises(FreeholdError, match="may not read"):
            await slot.call(GetDocument("notes/a.txt"), other)
        with pytest.raises(FreeholdError, match="may not write"):
            await use(slot, "pods_write", "a", path="notes/a.txt", content="x")
        (grant,) = (await slot.call(ListGrants(), OWNER)).grants
        assert (grant.agent, grant.session, grant.once) == ("agent-of-a", "a", False)
        await slot.call(RevokeAccess("agent-of-a", "notes/"), OWNER)
        with pytest.raises(FreeholdError, match="may not read"):
            await use(slot, "pods_read", "a", path="notes/a.txt")


async def test_what_is_not_text_is_described(slot: Slot) -> None:
    await slot.call(PutDocument("pic.png", "image/png", "/wA=", "base64"), OWNER)
    await use(slot, "pods_request", "a", Asked("conversation"), folder="", why="all")
    assert await use(slot, "pods_read", "a", path="pic.png") == "It is not text: image/png, 2 bytes."
