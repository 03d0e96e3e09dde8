"""The page Neighbours in a real browser: pair, see, change what a neighbour may use, and evict, on a desk and a phone; and
send work to a whole second Freehold, look at what comes back, and accept or drop it."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect
from tests.mesh.freeholds import MeshFreehold, running_mesh
from tests.support.axe import AXE, LOOK
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(manifest='[mesh]\nmode = "host"\nname = "home"\n')
WORKER = FreeholdOptions(
    agents=("builtin",),
    manifest='[slots]\norchestrator = "local"\n[agents]\ndefault = "builtin"\n[mesh]\nmode = "peer"\nname = "worker"\n',
)
FACTS = {"version": "7.0", "contracts": {}, "capabilities": [], "load": 0.5}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def friend(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("friend"), '[mesh]\nmode = "peer"\nname = "friend"\n') as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    """A whole Freehold, whose agent does the work in a computer of its own."""
    async with run_freehold(tmp_path_factory.mktemp("worker"), WORKER) as running:
        await until(partial(has_mesh, running))
        await until(running.is_connected)
        yield running


async def has_mesh(freehold: RunningFreehold) -> bool:
    return (await freehold.http.get("/v1/mesh")).status_code == 200


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    await until(partial(has_mesh, freehold))
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
    await expect(card.get_by_role("list", name="Agents of friend")).to_contain_text("Works on a prompt")
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


async def test_a_host_shows_its_clients_and_how_they_are(
    freehold: RunningFreehold, owner_page: OwnerPage, friend: MeshFreehold
) -> None:
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_text("No client is registered")).to_be_visible()
    made = await freehold.http.post("/v1/mesh/codes", json={"grants": ["register"], "name": "friend"})
    code = made.json()["code"]
    await friend.ask("POST", "/v1/mesh/neighbours", {"code": code, "name": "home"})
    home = friend.mesh.neighbours.get("home")
    await friend.mesh.ask_neighbour(home, "/v1/mesh/register", {**FACTS, "health": "not ready: \u202ecomputer"})
    clients = page.get_by_role("list", name="Registered clients")
    for words in ("Freehold 7.0, load 0.5, last heard", "Works there: nothing. Contracts: none", "Uses here: register"):
        await expect(clients).to_contain_text(words)
    await expect(clients).to_contain_text("not ready: ⟨U+202E⟩computer")
    assert (await freehold.http.delete("/v1/mesh/neighbours/friend")).is_success
    await expect(page.get_by_text("No client is registered")).to_be_visible()


async def send_work(page: Page, worker: RunningFreehold, prompt: str) -> Locator:
    """Sends it as the owner does, and returns its card when its files have come back. The owner there allows all."""
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="worker", exact=True))
    words = card.get_by_label("Work for an agent of worker")
    await words.fill(prompt)
    await card.get_by_role("button", name="Send work").click()
    await expect(words).to_have_value("")
    work = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=prompt.splitlines()[0]))

    async def is_returned() -> bool:
        for asked in await worker.call("GET", "/v1/approvals"):
            await worker.http.post(f"/v1/approvals/{asked['id']}", json={"answer": "once"})
        return await work.get_by_text("Files to look at").is_visible()

    await until(is_returned)
    return work


async def test_work_is_sent_its_files_are_read_and_accepted_or_dropped(
    freehold: RunningFreehold, owner_page: OwnerPage, worker: RunningFreehold
) -> None:
    await until(freehold.is_connected)
    code = (await worker.http.post("/v1/mesh/codes", json={"grants": ["work"]})).json()["code"]
    assert (await freehold.http.post("/v1/mesh/neighbours", json={"code": code})).is_success
    page = await open_page(owner_page, freehold)
    work = await send_work(page, worker, "WRITE /workspace/poem.txt made-there\nSAY A poem.")
    # What an agent said there and the files that it made are shown before anything of them is in the workspace.
    await work.get_by_role("button", name="Show details").click()
    await expect(work.get_by_text("A poem.")).to_be_visible()
    await work.get_by_text("poem.txt, ").click()
    await expect(work.locator("pre")).to_contain_text("made-there")
    assert not freehold.file("poem.txt").exists()
    await work.get_by_label("Folder of the workspace").fill("from/worker")
    await work.get_by_role("button", name="Accept the files").click()
    await expect(work.get_by_text("Accepted", exact=True)).to_be_visible()
    assert freehold.file("from/worker/poem.txt").read_text().strip() == "made-there"
    (accepted,) = await freehold.call("GET", "/v1/mesh/work")
    await work.get_by_role("button", name=f"Show entry {accepted['entry']} of history").click()
    await expect(page).to_have_url(f"{freehold.pages}/history?entry={accepted['entry']}")

    page = await open_page(owner_page, freehold)
    work = await send_work(page, worker, "WRITE /workspace/other.txt not-wanted\nSAY Another.")
    drop = work.get_by_role("button", name="Drop the files")
    await drop.click()
    sure = work.get_by_role("button", name="Drop them?")
    await expect(sure).to_be_visible()
    await page.wait_for_timeout(400)  # the second press of a double click does not confirm
    await sure.click()
    await expect(work.get_by_text("Dropped", exact=True)).to_be_visible()
    await expect(work.get_by_role("button", name="Accept the files")).to_have_count(0)
    states = {one["state"] for one in await freehold.call("GET", "/v1/mesh/work")}
    assert states == {"accepted", "dropped"}
    assert list(freehold.home.workspace.rglob("other.txt")) == []
    assert (await freehold.http.delete("/v1/mesh/neighbours/worker")).is_success
