"""The tour: a real agent changes a file without any model, asks first, and the change is undone."""

import importlib.resources
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.cli.test_chat import chat
from tests.support.browser import open_owner_page, run_browser
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.agents.tour import DARK_THEME, LIGHT_THEME, OWN_FILE, PROMPT, STARTER_FILE, choose_change

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), is_connected=False)


def put(file: Path, text: str) -> None:
    """A file that the agent may change: it belongs to the user of the computer."""
    file.write_text(text)
    user = file.parent.stat()
    os.chown(file, user.st_uid, user.st_gid)


@pytest.fixture
def theme(freehold: RunningFreehold) -> Iterator[Path]:
    """The file of the first project that the tour changes."""
    file = freehold.file(STARTER_FILE)
    file.parent.mkdir()
    user = file.parent.parent.stat()
    os.chown(file.parent, user.st_uid, user.st_gid)
    put(file, LIGHT_THEME)
    yield file
    file.unlink()
    file.parent.rmdir()


async def play(freehold: RunningFreehold, answer: str) -> str:
    """Play the tour, and return what the agent said."""
    opened = await freehold.call("POST", "/v1/tour")
    assert opened["prompt"] == PROMPT
    session = opened["session"]
    async with freehold.watch_new(session) as watch:
        ended = await freehold.run_turn(watch, session, opened["prompt"], answer)
    assert ended["data"]["stop_reason"] == "end_turn", ended
    events = await freehold.events(session)
    assert any(event["kind"] == "approval" for event in events)
    return "".join(event["data"]["text"] for event in events if event["kind"] == "message")


async def test_a_change_of_the_tour_is_asked_for_made_and_undone(freehold: RunningFreehold) -> None:
    said = await play(freehold, "once")
    assert "This was a tour" in said
    assert freehold.file(OWN_FILE).exists()
    await freehold.call("POST", "/v1/history/undo")
    assert not freehold.file(OWN_FILE).exists()
    assert freehold.model.requests == []


async def test_the_tour_knows_the_page_of_the_first_project() -> None:
    project = importlib.resources.files("freehold.starter") / "project"
    assert (project / STARTER_FILE).read_text() == LIGHT_THEME
    names = [line.partition(":")[0] for line in LIGHT_THEME.splitlines()[2:]]
    assert names == [line.partition(":")[0] for line in DARK_THEME.splitlines()[2:]], "no colour of the page is lost"


async def test_the_page_of_the_first_project_becomes_dark_and_light_again(
    freehold: RunningFreehold, theme: Path
) -> None:
    """Each tour changes something, also when the one before it was not undone."""
    for wanted in (DARK_THEME, LIGHT_THEME):
        assert f"before it wrote `{STARTER_FILE}`" in await play(freehold, "once")
        assert theme.read_text() == wanted
    await freehold.call("POST", "/v1/history/undo")
    assert theme.read_text() == DARK_THEME
    assert not freehold.file(OWN_FILE).exists()


async def test_a_page_that_the_owner_has_changed_is_not_touched() -> None:
    mine = LIGHT_THEME.replace("#fbfaf7", "#ffeecc")
    for shown in (mine, "", f"{STARTER_FILE}: No such file or directory"):
        assert choose_change(shown)[0] == OWN_FILE


async def test_what_is_rejected_on_the_tour_is_not_written(freehold: RunningFreehold) -> None:
    assert "you rejected the change" in await play(freehold, "reject")
    assert not freehold.file(OWN_FILE).exists()


async def test_the_tour_is_no_model_that_anyone_could_use_by_mistake(freehold: RunningFreehold) -> None:
    assert (await freehold.call("GET", "/v1/models"))["models"] == []
    body = {"kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}
    answer = await freehold.http.put("/v1/models/tour", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "models.bad-name")


async def test_the_tour_in_the_browser_shows_a_change_and_its_undo(freehold: RunningFreehold) -> None:
    async with run_browser() as browser, open_owner_page(browser, freehold) as owner:
        page = owner.page
        await owner.go("/sessions")
        await expect(page.get_by_text("A script answers in the place of a model.")).to_be_visible()
        await page.get_by_role("button", name="Take a tour first, without a model").click()
        await expect(owner.permission_request).to_contain_text(OWN_FILE)
        assert not freehold.file(OWN_FILE).exists()
        await owner.answer_button("Once").click()
        await expect(owner.transcript).to_contain_text("This was a tour")
        assert freehold.file(OWN_FILE).exists()
        await page.get_by_role("button", name="Undo this turn").click()
        await page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
        await until(lambda: not freehold.file(OWN_FILE).exists())
    assert freehold.model.requests == []


async def test_the_tour_on_the_command_line_asks_and_undoes(freehold: RunningFreehold) -> None:
    with chat(freehold, verb="try") as terminal:
        await terminal.until("This is a tour: a script answers in the place of a model.")
        assert OWN_FILE in await terminal.until("[n] no")
        assert not freehold.file(OWN_FILE).exists()
        terminal.type("y")
        await terminal.until("Undo the change now? [Y/n]: ")
        assert freehold.file(OWN_FILE).exists()
        terminal.type("\n")
        await terminal.until("To connect a model of your own: freehold models add")
        assert not freehold.file(OWN_FILE).exists()
    assert terminal.program.returncode == 0
    assert freehold.model.requests == []


async def test_the_command_line_undoes_what_the_tour_changed_and_nothing_else(freehold: RunningFreehold) -> None:
    """Also when it was not the last change, and when the tour before it was not undone."""
    put(freehold.file(OWN_FILE), "an earlier tour\n")
    await freehold.call("GET", "/v1/history/compare?old=before&new=now")  # it is recorded now
    with chat(freehold, verb="try") as terminal:
        await terminal.until("[n] no")
        terminal.type("y")
        await terminal.until("Undo the change now? [Y/n]: ")
        put(freehold.file("mine.txt"), "mine\n")
        await freehold.call("GET", "/v1/history/compare?old=before&new=now")
        terminal.type("\n")
        await terminal.until("To connect a model of your own: freehold models add")
    assert freehold.file(OWN_FILE).read_text() == "an earlier tour\n"
    assert freehold.file("mine.txt").read_text() == "mine\n"
    freehold.file(OWN_FILE).unlink()


async def test_a_change_that_is_rejected_on_the_command_line_leaves_nothing_to_undo(freehold: RunningFreehold) -> None:
    with chat(freehold, verb="try") as terminal:
        await terminal.until("[n] no")
        terminal.type("n")
        await terminal.until("The change was not made. There is nothing to undo.")
    assert terminal.program.returncode == 0
    assert not freehold.file(OWN_FILE).exists()
