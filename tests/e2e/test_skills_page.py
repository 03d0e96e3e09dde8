"""Skills from the page to an agent and back: looked at, added, loaded, counted, proposed, updated, switched off."""

import json

import pytest
from playwright.async_api import Locator, Page, expect
from tests.e2e.test_accessibility import find_faults
from tests.skills.skill_folders import skill_text, write_skill
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.skills.proposals import PROPOSALS
from freehold.skills.sources import read_shipped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n'
)


async def open_skills(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/skills")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Skills", exact=True)).to_be_visible()
    return page


def card(page: Page, name: str) -> Locator:
    heading = page.get_by_role("heading", name=name, exact=True)
    return page.get_by_role("list", name="Skills in use").get_by_role("listitem").filter(has=heading)


async def test_a_shipped_skill_is_read_added_loaded_by_an_agent_and_counted(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = await open_skills(owner_page, freehold)
    await page.get_by_role("button", name="Look", exact=True).press("Enter")
    await page.get_by_role("button", name="Show slides").press("Enter")
    await expect(page.get_by_label("Files").get_by_text("scripts/make_slides.py")).to_be_visible()
    await expect(page.get_by_label("Files")).to_contain_text("runs with")
    await expect(page.get_by_label("Instructions")).to_contain_text("name: slides")
    await page.get_by_role("button", name="Add: slides").press("Enter")
    await expect(card(page, "slides")).to_contain_text("never loaded")
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, 'CALL skill {"name": "slides"}\nSAY done')
    await expect(card(page, "slides")).to_contain_text("loaded in 1 turn: builtin 1×")
    await page.get_by_role("button", name="Switch off slides").press("Enter")
    await expect(card(page, "slides").get_by_text("off", exact=True)).to_be_visible()
    async with freehold.watch_new(session) as watch:
        await freehold.run_turn(watch, session, 'CALL skill {"name": "slides"}\nSAY done')
    assert "There is no skill slides" in freehold.model.requests[-1].body.decode()
    await page.get_by_role("button", name="Switch on slides").press("Enter")
    await expect(card(page, "slides").get_by_text("off", exact=True)).to_have_count(0)


async def test_a_proposal_of_an_agent_is_adopted_and_its_next_version_is_shown_as_a_difference(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        write = json.dumps({"path": f"{PROPOSALS}/tea/SKILL.md", "content": skill_text("tea", "Makes tea.")})
        await freehold.run_turn(watch, session, f"CALL write {write}\nSAY proposed")
    page = await open_skills(owner_page, freehold)
    await page.get_by_label("Source").select_option("proposals")
    await page.get_by_role("button", name="Look", exact=True).press("Enter")
    await expect(card(page, "tea")).to_have_count(0)
    await page.get_by_role("button", name="Add: tea").press("Enter")
    await expect(card(page, "tea")).to_contain_text("proposed by an agent")
    write_skill(freehold.file(PROPOSALS) / "tea", "tea")
    await page.get_by_role("button", name="Look for an update of tea").press("Enter")
    await expect(page.get_by_label("Changes")).to_contain_text("+description: Makes charts.")
    await page.get_by_role("button", name="Use this version: tea").press("Enter")
    await expect(card(page, "tea")).to_contain_text("Makes charts.")


async def test_every_shipped_skill_is_loaded_by_an_agent_and_its_scripts_start_sealed(
    freehold: RunningFreehold,
) -> None:
    looked = await freehold.call("POST", "/v1/skills/look", source="shipped")
    contents = [one["content"] for one in looked["skills"]]
    await freehold.call("POST", "/v1/skills", digests=[one["digest"] for one in contents])
    session = await freehold.open("builtin")
    calls = [f"CALL skill {json.dumps({'name': one['name']})}" for one in contents]
    scripts = [
        f"/opt/agent-skills/current/{one['name']}/{script['path']}" for one in contents for script in one["scripts"]
    ]
    started = " && ".join(f"{script} --help >/dev/null" for script in scripts)
    async with freehold.watch(session) as watch:
        await freehold.run_turn(
            watch, session, "\n".join([*calls, f"RUN {started} && echo all $((20 + 2)) started", "SAY done"])
        )
    said = freehold.model.requests[-1].body.decode()
    for one in read_shipped():
        body = one.package.instructions.rpartition("\n---\n")[2].strip()
        assert json.dumps(body.splitlines()[0], ensure_ascii=False)[1:-1] in said, one.package.name
    assert "all 22 started" in said, "the words are not in the prompt itself"
    uses = {one["name"]: one["use"]["count"] for one in (await freehold.call("GET", "/v1/skills"))["skills"]}
    assert all(uses[one["name"]] >= 1 for one in contents)


async def test_the_page_fits_on_a_phone_and_has_no_faults(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_skills(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Look", exact=True).press("Enter")
    await page.get_by_role("button", name="Show data-to-chart").first.press("Enter")
    await expect(page.get_by_label("Instructions").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await find_faults(page) == []
