"""Git in the page: a part of a file is staged, committed with the agent's words and pushed; two branches in two folders."""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect
from tests.git.git_server import PASSWORD, USER, GitServer, run_git_server
from tests.git.test_repository import make_repository, run_inside
from tests.support.browser import OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with run_git_server(tmp_path_factory.mktemp("git")) as server:
        yield server


async def test_a_part_of_a_file_is_committed_and_pushed(
    freehold: RunningFreehold, owner_page: OwnerPage, server: GitServer
) -> None:
    server.create("site")
    folder = await make_repository(freehold, "site")
    await run_inside(
        freehold,
        f"cd site && seq 40 > n.txt && git add -A && git -c user.name=T -c user.email=t@e.org commit -qm numbers && "
        f"git remote add origin {server.url('site')} && (echo first; seq 2 39; echo last) > n.txt",
    )
    session = await freehold.open("builtin")
    page = owner_page.page
    await owner_page.open_session(session)
    beside = page.get_by_role("complementary", name="Beside the conversation")
    await beside.get_by_role("tab", name="Git").click()
    await beside.get_by_role("button", name="n.txt changed").click()
    await beside.get_by_role("button", name="Stage this part").first.click()
    staged = beside.get_by_role("region", name="Staged")
    await staged.get_by_role("button", name="n.txt changed").click()
    await expect(staged.get_by_text("first", exact=True)).to_be_visible()
    await expect(staged.get_by_text("last", exact=True)).to_have_count(0)

    await beside.get_by_role("button", name="Ask the agent for a message").click()
    message = beside.get_by_label("Commit message")
    await expect(message).not_to_have_value("")
    await message.fill("Name the first number")
    await beside.get_by_role("button", name="Commit 1 file").click()
    await expect(beside.get_by_role("region", name="Log")).to_contain_text("Name the first number")
    await expect(message).to_have_value("")

    await beside.get_by_role("button", name="Push").click()
    dialog = page.get_by_role("dialog", name="Push")
    await expect(dialog).to_contain_text(server.url("site"))
    await dialog.get_by_label("Token of this host").fill(f"{USER}:{PASSWORD}")
    await dialog.get_by_role("button", name="Push").click()
    await expect(beside.get_by_role("region", name="Branch")).to_contain_text("up to date with origin/main")
    assert server.read("site", "log", "-1", "--format=%s", "main") == "Name the first number"
    assert (folder / "n.txt").read_text().startswith("first\n")


async def test_a_second_branch_gets_a_folder_and_a_session(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    await make_repository(freehold, "pair", "a.txt")
    page = owner_page.page
    await owner_page.go("/git?folder=pair")
    await page.get_by_label("Branch of the new worktree").fill("idea")
    await page.get_by_role("button", name="Add worktree").click()
    trees = page.get_by_role("region", name="Worktrees")
    await expect(trees).to_contain_text("pair-idea")
    assert (freehold.file("pair-idea") / "a.txt").exists()
    await trees.get_by_role("button", name="Start a session there").click()
    await expect(page.locator(".sessions-folder")).to_have_text("pair-idea")
    await owner_page.send_prompt("WRITE idea.txt only here")
    await owner_page.answer_button("Once").click()
    await until((freehold.file("pair-idea") / "idea.txt").exists)
    assert not freehold.file("idea.txt").exists()
    beside = page.get_by_role("complementary", name="Beside the conversation")
    tab = beside.get_by_role("tab", name="Git")
    if await tab.get_attribute("aria-selected") != "true":  # the page remembers which was open
        await tab.click()
    await expect(beside.get_by_role("combobox", name="Repository")).to_have_value("pair-idea")
    await beside.get_by_role("button", name="Stage idea.txt").click()
    await beside.get_by_label("Commit message").fill("An idea")
    await beside.get_by_role("button", name="Commit 1 file").click()
    await expect(beside.get_by_role("region", name="Log")).to_contain_text("An idea")
    await owner_page.go("/git?folder=pair")
    remove = trees.get_by_role("button", name="Remove the worktree idea")
    # The page ignores a second press that comes at once.
    await remove.evaluate(
        "(it) => { it.click(); return new Promise((on) => setTimeout(on, 500)).then(() => it.click()) }"
    )
    await until(lambda: not freehold.file("pair-idea").exists())
    await expect(trees).not_to_contain_text("pair-idea")


async def test_what_git_refuses_is_said_in_its_words(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    await make_repository(freehold, "plain", "a.txt")
    page = owner_page.page
    await owner_page.go("/git?folder=plain")
    await expect(page.get_by_role("button", name="Push")).to_be_disabled()
    await page.get_by_role("combobox", name="Branch").first.select_option("New branch…")
    await page.get_by_role("dialog", name="New branch").get_by_label("Name").fill("main")
    await page.get_by_role("dialog", name="New branch").get_by_role("button", name="Create").click()
    await expect(page.locator(".git").get_by_role("alert")).to_contain_text("already exists")
