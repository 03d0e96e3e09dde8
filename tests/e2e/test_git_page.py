"""Git in the page: a part of a file is staged, committed with the agent's words and pushed; a pull; two branches in two folders."""

from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect
from tests.git.git_server import PASSWORD, USER, GitServer, run_git_server
from tests.git.test_repository import COMMIT, git, make_repository, run_inside
from tests.git.test_transfer import bring, connect, push
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


async def test_without_a_session_a_cheap_model_proposes_the_message(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await make_repository(freehold, "alone", "a.txt")
    page = owner_page.page
    await owner_page.go("/git?folder=alone")
    form = page.get_by_role("form", name="Commit")
    await expect(form).to_contain_text("For a proposal, what is staged is sent to anthropic/claude-sonnet-4-5.")
    propose = form.get_by_role("button", name="Propose a message")
    await expect(propose).to_be_disabled()
    (freehold.file("alone") / "a.txt").write_text("two\n")
    await page.get_by_role("button", name="Stage a.txt").click()
    await propose.click()
    await expect(form.get_by_label("Commit message")).to_have_value("Scripted title")
    await form.get_by_role("button", name="Commit 1 file").click()
    await expect(page.get_by_role("region", name="Log")).to_contain_text("Scripted title")


async def test_what_git_refuses_is_said_in_its_words(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    await make_repository(freehold, "plain", "a.txt")
    page = owner_page.page
    await owner_page.go("/git?folder=plain")
    await expect(page.get_by_role("button", name="Push")).to_be_disabled()
    await page.get_by_role("combobox", name="Branch").first.select_option("New branch…")
    await page.get_by_role("dialog", name="New branch").get_by_label("Name").fill("main")
    await page.get_by_role("dialog", name="New branch").get_by_role("button", name="Create").click()
    await expect(page.locator(".git").get_by_role("alert")).to_contain_text("already exists")


async def pull(page: Page, address: str) -> None:
    """Presses Pull in the page, and again in the dialog that shows the address."""
    await page.get_by_role("region", name="Branch").get_by_role("button", name="Pull").click()
    dialog = page.get_by_role("dialog", name="Pull")
    await expect(dialog).to_contain_text(address)
    await dialog.get_by_role("button", name="Pull").click()


async def test_a_pull_moves_the_branch_forward_and_says_when_both_sides_have_commits(
    freehold: RunningFreehold, owner_page: OwnerPage, server: GitServer
) -> None:
    folder = await connect(freehold, server, "shared")
    status, words = await push(freehold, server, "shared")
    assert status == 200, words
    other = "git clone -q shared elsewhere && cd elsewhere && echo two > b.txt && git add -A"
    await run_inside(freehold, f"{other} && {COMMIT} second")
    await bring(freehold, server)
    page = owner_page.page
    await owner_page.go("/git?folder=shared")
    branch, log = page.get_by_role("region", name="Branch"), page.get_by_role("region", name="Log")
    await expect(branch).to_contain_text("up to date with origin/main")
    await pull(page, server.url("shared"))
    await expect(log).to_contain_text("second")
    await expect(branch).to_contain_text("up to date with origin/main")
    assert (folder / "b.txt").read_text() == "two\n"

    await run_inside(freehold, f"cd elsewhere && {COMMIT} theirs && cd ../shared && {COMMIT} mine")
    await bring(freehold, server)
    await expect(log).to_contain_text("mine")
    await pull(page, server.url("shared"))
    alert = page.locator(".git").get_by_role("alert")
    await expect(alert).to_contain_text("origin/main was fetched and not merged")
    await expect(alert).to_contain_text("Ask an agent to merge or rebase")
    await expect(branch).to_contain_text("1 to push, 1 to pull (origin/main)")
    await expect(log).not_to_contain_text("theirs")
    assert git(folder, "log", "-1", "--format=%s") == "mine"
    await alert.get_by_role("button", name="Close").click()
    await expect(alert).to_have_count(0)


async def test_another_branch_is_switched_to_and_never_over_changes(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    folder = await make_repository(freehold, "paths", "a.txt")
    steps = "git switch -qc idea && echo idea > a.txt && echo idea > b.txt && git add -A"
    await run_inside(freehold, f"cd paths && {steps} && {COMMIT} idea && git switch -q main")
    page = owner_page.page
    await owner_page.go("/git?folder=paths")
    branch = page.get_by_role("region", name="Branch").get_by_role("combobox", name="Branch")
    log = page.get_by_role("region", name="Log")
    await expect(branch).to_have_value("main")
    await branch.select_option("idea")
    await expect(branch).to_have_value("idea")
    await expect(log.get_by_role("button", name="idea").first).to_be_visible()
    assert (folder / "b.txt").read_text() == "idea\n"
    await branch.select_option("main")
    await expect(branch).to_have_value("main")
    await until(lambda: not (folder / "b.txt").exists())
    assert (folder / "a.txt").read_text() == "one\n"

    (folder / "a.txt").write_text("not committed\n")
    await branch.select_option("idea")
    await expect(page.locator(".git").get_by_role("alert")).to_contain_text("would be overwritten")
    await expect(branch).to_have_value("main")
    assert (folder / "a.txt").read_text() == "not committed\n"
