"""The page of the fleet in a real browser: off, nodes with their computers, a node drained by keyboard, a failure, a phone,
and as many nodes as a fleet may have.

Ray is not started for it: the replies of the fleet are given here, and their form is that of `tests/fleet/test_routes.py`.
"""

from typing import Any

import pytest
from playwright.async_api import Page, Route, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions()


def make_node(name: str, **changes: Any) -> dict[str, Any]:
    sizes = {"cpus": 8, "free_cpus": 5.5, "memory": 8 * 10**9, "free_memory": 6 * 10**9, "gpus": 0, "free_gpus": 0}
    known = {"name": name, "address": "10.0.0.6", "state": "ready", "trouble": "", "labels": {"arch": "x86_64"}}
    return {**known, "computers": 0, **sizes, **changes}


COMPUTER = {
    "id": "a1",
    "name": "run-7",
    "who": "owner",
    "session": "s1",
    "node": "shed",
    "state": "running",
    "cpus": 2,
    "memory": 10**9,
    "gpus": 0,
}
WAIT = {
    "id": "b2",
    "name": "run-8",
    "who": "owner",
    "session": None,
    "priority": 0,
    "since": "2026-01-01T00:00:00Z",
    "reason": "All nodes are full: 4 processors and 1024 MiB of memory are not free",
}


class ShownFleet:
    """What `/v1/fleet` answers, and what was asked of it."""

    def __init__(self) -> None:
        self.nodes = [make_node("attic", state="away", trouble="not connected: timed out"), make_node("shed")]
        self.nodes[1].update(computers=1, gpus=2, free_gpus=1)
        self.computers, self.waiting = [COMPUTER], [WAIT]
        self.asked: list[tuple[str, Any]] = []
        self.fails = False
        self.waits = 1

    async def answer(self, route: Route) -> None:
        request = route.request
        if request.method != "GET":
            name = request.url.rpartition("/")[2]
            self.asked.append((f"{request.method} {name}", request.post_data_json))
            next(node for node in self.nodes if node["name"] == name)["state"] = "draining"
            await route.fulfill(json={"name": name, "computers": 1})
        elif self.fails:
            error = {"code": "fleet.not-running", "message": "The fleet does not answer", "hint": "freehold up"}
            await route.fulfill(status=503, json={"error": {**error, "error_id": "e1"}})
        else:
            body = {"nodes": self.nodes, "computers": self.computers, "waiting": self.waiting}
            counts = {"computer_count": sum(one["computers"] for one in self.nodes), "waiting_count": self.waits}
            machines = [{"name": "small-1f", "kind": "small", "state": "starting", "trouble": ""}]
            more = {"enabled": True, "ready": True, "machines": machines, "trouble": ""}
            await route.fulfill(json={**more, **body, **counts})


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/fleet")
    await expect(page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()
    return page


async def test_the_page_of_the_fleet(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_text("The fleet is off.")).to_be_visible()

    fleet = ShownFleet()
    await page.route("**/v1/fleet**", fleet.answer)
    shed = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="shed"))
    await expect(page.get_by_text("1 node is away.")).to_be_visible()
    await expect(page.get_by_text("not connected: timed out")).to_be_visible()
    await expect(shed.get_by_text("Processors: 2.5 of 8")).to_be_visible()
    await expect(shed.get_by_text("GPUs: 1 of 2")).to_be_visible()
    await expect(shed.get_by_role("link", name="run-7")).to_have_attribute("href", "/sessions?id=s1")
    await expect(page.get_by_text("All nodes are full")).to_be_visible()
    small = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="small-1f"))
    await expect(small.get_by_text("Starting")).to_be_visible()

    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("button", name="Drain shed").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Resume shed")).to_be_visible()
    await page.get_by_role("button", name="Remove shed").press("Enter")
    await expect(page.get_by_text("Remove and lose its computers")).to_be_visible()
    await page.keyboard.press("Escape")
    assert fleet.asked == [("PATCH shed", {"draining": True})]

    fleet.fails = True
    await expect(page.get_by_text("The fleet does not answer")).to_be_visible()
    again = page.get_by_role("button", name="Try again")
    await expect(again).to_be_visible()
    fleet.fails = False
    # The page asks from time to time by itself, and may take the button away before it is pressed.
    await again.evaluate_all("found => found.forEach((one) => one.click())")
    await expect(page.get_by_text("The fleet does not answer")).to_have_count(0)


async def test_a_thousand_nodes_are_shown_and_each_can_be_drained(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """With the first 500 of 50,000 computers, and of as many that wait."""
    fleet = ShownFleet()
    fleet.nodes = [make_node(f"node-{number:03}", computers=50) for number in range(1000)]
    fleet.computers = [{**COMPUTER, "id": f"c{number}", "node": f"node-{number // 50:03}"} for number in range(500)]
    fleet.waiting, fleet.waits = [{**WAIT, "id": f"w{number}"} for number in range(500)], 50_000
    await owner_page.page.route("**/v1/fleet**", fleet.answer)
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_role("heading", name="node-")).to_have_count(1000)
    await expect(page.get_by_text("49,500 more computers not shown.")).to_have_count(2)
    await page.get_by_role("button", name="Drain node-999").click()
    await expect(page.get_by_role("button", name="Resume node-999")).to_be_visible()
    assert fleet.asked == [("PATCH node-999", {"draining": True})]
