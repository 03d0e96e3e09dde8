"""The page Neighbours in a real browser: pair, see, change what a neighbour may use, and evict, on a desk and a phone."""

from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.mesh.freeholds import MeshFreehold, running_mesh
from tests.support.axe import AXE, LOOK
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(manifest='[mesh]\nmode = "peer"\nname = "home"\n')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def friend(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("friend"), '[mesh]\nmode = "peer"\nname = "friend"\n') as running:
        yield running


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    async def is_on() -> bool:
        return (await freehold.http.get("/v1/mesh")).status_code == 200

    await until(is_on)
    page = owner_page.page
    await page.goto(freehold.pages + "/neighbours")
    await expect(page.get_by_role("heading", name="This Freehold")).to_be_visible()
    return page


async def test_a_neighbour_is_paired_by_a_code_changed_and_evicted(
    freehold: RunningFreehold, owner_page: OwnerPage, friend: MeshFreehold
) -> None:
    page = await open_page(owner_page, freehold)
    code = (await friend.ask("POST", "/v1/mesh/codes", {"grants": ["work"]}))["code"]
    await page.get_by_label("Or enter the code of the other Freehold").fill(code)
    await page.get_by_role("button", name="Look who it is").click()
    key = (await friend.ask("GET", "/v1/mesh"))["npub"]
    await expect(page.get_by_text(key)).to_be_visible()
    await page.get_by_role("button", name="Pair: the key is right").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="friend"))
    await expect(card).to_contain_text("It gives you: work")
    await card.get_by_label("Use the work items").check()

    async def has_grant() -> bool:
        return [one["grants"] for one in await freehold.call("GET", "/v1/mesh/neighbours")] == [["beads"]]

    await until(has_grant)
    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.evaluate(AXE)
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert await page.evaluate(LOOK) == [], scheme
    await page.set_viewport_size(DESKTOP)
    await card.get_by_role("button", name="Evict friend").click()
    again = card.get_by_role("button", name="Evict friend: press again to confirm")
    await expect(again).to_be_visible()
    await page.wait_for_timeout(400)  # the second press of a double click does not count
    await again.click()
    await expect(page.get_by_text("No neighbour yet")).to_be_visible()
    assert await freehold.call("GET", "/v1/mesh/neighbours") == []


async def test_a_code_is_made_that_the_other_side_can_enter(
    freehold: RunningFreehold, owner_page: OwnerPage, friend: MeshFreehold
) -> None:
    page = await open_page(owner_page, freehold)
    await page.get_by_label("Send work to an agent here").check()
    await page.get_by_role("button", name="Make a code").click()
    code = await page.locator("code", has_text="freehold-pair:").inner_text()
    made = await friend.ask("POST", "/v1/mesh/neighbours", {"code": code, "name": "home"})
    assert made["given"] == ["work"]
    await expect(page.get_by_role("heading", name="friend", level=3)).to_be_visible()
    # A link from one control center to the other has the code behind its #, and the address does not keep it.
    await page.get_by_label("Or the address of the other control center").fill(freehold.pages)
    link = await page.get_by_role("link", name="Open it there with this code").get_attribute("href")
    assert link == f"{freehold.pages}/neighbours#{code}"
    await page.goto("about:blank")
    await page.goto(link)
    await expect(page.get_by_label("Or enter the code of the other Freehold")).to_have_value(code)
    await expect(page).to_have_url(f"{freehold.pages}/neighbours")
