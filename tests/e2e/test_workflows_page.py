"""The page of workflows in a real browser: run by keys, a question answered, the steps seen, retried, also on a phone."""

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))
DESK: ViewportSize = {"width": 1280, "height": 800}
FILE = """
from freehold_workflow import agent, ask, command

async def main(data):
    await command("echo made > made.txt")
    said = await agent("SAY The tests pass.")
    answer = await ask("Commit this?\\n one.txt | 2 +-\\n two.txt | 9 ++", ["commit", "leave it"])
    print("printed text")
    return f"{said} {answer}"
"""


async def open_workflows(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    await until(freehold.is_connected)
    freehold.file("nightly.py").write_text(FILE)
    page = owner_page.page
    await page.goto(freehold.pages + "/workflows")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
    return page


async def test_a_workflow_is_run_answered_and_retried_by_keys(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_workflows(owner_page, freehold)
    await page.get_by_label("File of the workspace").fill("nightly.py")
    await page.get_by_role("button", name="Run workflow").press("Enter")
    steps = page.get_by_role("list", name="Steps")
    first = steps.get_by_role("listitem", name="Step 1")
    await expect(first).to_contain_text("done")
    await expect(first.get_by_role("list", name="Changed files")).to_contain_text("made.txt")
    await expect(steps.get_by_role("listitem", name="Step 2")).to_contain_text("The tests pass.")
    question = steps.get_by_role("listitem", name="Step 3")
    await expect(question).to_contain_text("waits for your answer")
    shown = question.get_by_text("two.txt | 9 ++")
    assert await shown.inner_text() == "Commit this?\n one.txt | 2 +-\n two.txt | 9 ++"
    await question.get_by_role("button", name="commit", exact=True).press("Enter")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("The tests pass. commit")
    await expect(page.get_by_role("region", name="Printed")).to_contain_text("printed text")
    await question.get_by_role("button", name="Retry from step 3").press("Enter")
    await page.wait_for_timeout(400)  # the second press of a double click does not confirm
    await question.get_by_role("button", name="Retry from step 3").press("Enter")
    await expect(question).to_contain_text("waits for your answer")
    await page.get_by_role("button", name="End workflow").press("Enter")
    await page.wait_for_timeout(400)
    await page.get_by_role("button", name="End workflow").press("Enter")
    await expect(question).to_contain_text("ended")


async def test_workflows_fit_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_workflows(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await page.get_by_label("File of the workspace").fill("missing-file-with-a-name-that-is-rather-long.py")
    await page.get_by_role("button", name="Run workflow").click()
    await expect(page.locator(".problem-text").first).to_contain_text("missing-file")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("button", name="All workflows").click()
    await expect(page.get_by_role("article").first).to_contain_text("failed")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESK)
