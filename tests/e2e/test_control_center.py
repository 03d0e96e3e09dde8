"""The control center in a real browser, against a whole Freehold: each page does what its owner came for."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.e2e.house import Freehold, freehold_up, launch, signed_in

pytestmark = pytest.mark.shared_processes

ASK = (
    "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT asked.example.com:443 HTTP/1.1\\r\\n"
    "Host: asked.example.com:443\\r\\n\\r\\n' >&3; head -n 1 <&3\n"
)
PUT = """([path, text]) => fetch('/v1/files/content?path=' + encodeURIComponent(path), {method: 'PUT', body: text})
  .then((answer) => answer.status)"""
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freehold]:
    with freehold_up(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture(scope="module")
def context(freehold: Freehold) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        browser: Browser = launch(playwright)
        yield signed_in(browser, freehold)
        browser.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab that fails the test when the content policy stopped anything, or when a script of another ran."""
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    wrong: list[str] = []
    opened.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield opened
    assert wrong == []
    assert opened.evaluate("window.pwned") is None
    opened.close()


def write(page: Page, path: str, text: str) -> None:
    assert page.evaluate(PUT, [path, text]) == 200


def go(page: Page, freehold: Freehold, path: str) -> None:
    page.goto(freehold.url + path)
    page.get_by_text("Live", exact=True).wait_for(state="attached")


def open_terminal(page: Page) -> None:
    """A new one, beside those that are open."""
    with page.expect_response(lambda answer: answer.url.endswith("/v1/terminals") and answer.status == 201) as made:
        page.get_by_role("button", name=re.compile("Open a terminal|New terminal")).first.click()
    fresh = page.locator(f".screen[data-terminal='{made.value.json()['id']}']:not([hidden])")
    fresh.locator(".xterm-rows").get_by_text("$").first.wait_for()


def type_line(page: Page, text: str) -> None:
    page.locator(".screen:not([hidden]) textarea").focus()
    page.keyboard.type(text)


def shows(page: Page, text: str) -> None:
    expect(page.locator(".screen:not([hidden]) .xterm-rows")).to_contain_text(text, timeout=15_000)


def test_history_shows_a_change_and_takes_it_back(freehold: Freehold, page: Page) -> None:
    """The entry appears by itself, its lines are shown, the plan names the file, and the undo undoes it on disk."""
    go(page, freehold, "/history")
    write(page, "poem.txt", "roses\n")
    rows = page.locator(".entry")
    expect(rows.first).to_contain_text("1 added", timeout=15_000)
    before = rows.count()
    write(page, "poem.txt", "violets\n")
    expect(rows).to_have_count(before + 1, timeout=15_000)
    rows.first.get_by_role("button", expanded=False).first.click()
    expect(rows.first.locator("tr[data-kind=added] .text")).to_have_text("violets")
    expect(rows.first.locator("tr[data-kind=removed] .text")).to_have_text("roses")

    page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("workspace/poem.txt")
    assert (freehold.home.workspace / "poem.txt").read_text() == "violets\n"
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(rows.first).to_contain_text("Undone")
    assert (freehold.home.workspace / "poem.txt").read_text() == "roses\n"
    expect(rows.nth(1)).to_have_attribute("data-undone", "true")

    page.get_by_role("button", name="Redo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Redo", exact=True).click()
    expect(rows.first).to_contain_text("Done again")
    assert (freehold.home.workspace / "poem.txt").read_text() == "violets\n"


def test_a_file_is_edited_and_a_change_under_the_editor_is_a_conflict(freehold: Freehold, page: Page) -> None:
    go(page, freehold, "/files")
    write(page, "plan.md", "one\n")
    page.get_by_role("treeitem", name="plan.md").click()
    content = page.locator(".editor-host .cm-content")
    expect(content).to_contain_text("one")
    content.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("two")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("not saved")).to_have_count(0)
    assert (freehold.home.workspace / "plan.md").read_text() == "one\ntwo"

    write(page, "plan.md", "theirs\n")
    expect(content).to_contain_text("theirs")  # nothing of ours was in the way
    content.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("mine")
    write(page, "plan.md", "theirs again\n")
    page.get_by_text("changed on disk while you were editing").wait_for()
    expect(content).to_contain_text("mine")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("changed on disk while you were editing").wait_for()
    assert (freehold.home.workspace / "plan.md").read_text() == "theirs again\n"
    page.get_by_role("button", name="Keep mine").click()
    expect(page.get_by_text("changed on disk")).to_have_count(0)
    assert (freehold.home.workspace / "plan.md").read_text() == "theirs\nmine"


def test_a_terminal_is_typed_into_and_comes_back_after_a_reload(freehold: Freehold, page: Page) -> None:
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(page, "echo one-$((40+2))\n")
    shows(page, "one-42")
    page.reload()
    shows(page, "one-42")
    type_line(page, "echo two-$((40+3))\n")
    shows(page, "two-43")


def test_a_question_of_the_network_is_answered_from_any_page(freehold: Freehold, page: Page) -> None:
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(page, ASK)
    bar = page.get_by_role("alertdialog")
    expect(bar).to_contain_text("asked.example.com:443")
    page.get_by_role("link", name="Files").click()
    bar.get_by_role("button", name="Never").click()
    expect(bar).to_have_count(0)
    page.get_by_role("link", name="Network").click()
    rule = page.locator(".rule-row", has_text="asked.example.com")
    expect(rule).to_contain_text("deny")
    rule.get_by_role("button", name="Forget").click()
    expect(rule).to_have_count(0)
    page.get_by_role("link", name="Terminal").click()
    shows(page, "HTTP/1.1 403")


def entry_of(page: Page, path: str) -> int:
    """The entry that has a path, as soon as history has taken it: some seconds after the last write."""
    for _ in range(100):
        found: int | None = page.evaluate(
            "(path) => fetch('/v1/history?limit=1&path=' + encodeURIComponent(path))"
            ".then((answer) => answer.json()).then((page) => page.entries?.[0]?.id ?? null)",
            path,
        )
        if found is not None:
            return found
        page.wait_for_timeout(200)
    raise AssertionError(f"{path} never came into history")


def test_script_in_names_titles_and_contents_stays_text(freehold: Freehold, page: Page) -> None:
    """The page fixture sees whether anything ran or the content policy had to stop it."""
    go(page, freehold, "/files")
    name = "<img src=x onerror='window.pwned=1'>.html"
    body = "<script>window.pwned=1</script><svg onload='window.pwned=1'>"
    write(page, name, body)
    write(page, "a.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{body}</svg>")
    page.get_by_role("treeitem", name=name).click()
    expect(page.locator(".editor-host .cm-content")).to_contain_text("window.pwned=1")
    page.get_by_role("treeitem", name="a.svg").click()
    expect(page.locator(".editor-host .cm-content")).to_contain_text("xmlns")
    assert page.locator("main img, main iframe, main object, main embed").count() == 0
    go(page, freehold, "/history")
    write(page, f"again {name}", body)
    number = entry_of(page, f"workspace/again {name}")
    entry = page.locator(".entry", has=page.get_by_text(f"#{number}", exact=True)).first
    entry.get_by_role("button").first.click()
    expect(entry.locator(".changed .path", has_text=name).last).to_be_visible()
    expect(entry.locator(".diff .text", has_text="window.pwned=1").last).to_be_visible()
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(
        page, "printf '\\033]0;<img src=x onerror=window.pwned=1>\\007\\033]52;c;cHduZWQ=\\007done-%s\\n' $((1+1))\n"
    )
    shows(page, "done-2")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("<img src=x")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert page.evaluate("navigator.clipboard.readText()") != "pwned"
    type_line(page, "printf '\\033]8;;javascript:window.pwned=1\\033\\\\press\\033]8;;\\033\\\\ here-%s\\n' $((1+2))\n")
    shows(page, "here-3")
    page.locator(".xterm-rows").get_by_text("press").last.click(force=True)


def test_a_gateway_that_dies_is_survived_with_what_was_typed(freehold: Freehold, page: Page) -> None:
    """The page says so, offers the keeper's page, and goes on by itself when the gateway is back."""
    go(page, freehold, "/network")
    page.get_by_label("Host").fill("half.typed.exam")
    page.evaluate("""() => { window.same = true }""")
    gateway = _gateway_of(freehold)
    os.kill(gateway, signal.SIGSTOP)
    try:
        page.context.set_offline(True)
        recovery = page.get_by_role("link", name="Open the recovery page")
        page.evaluate("window.dispatchEvent(new Event('offline'))")
    finally:
        os.kill(gateway, signal.SIGCONT)
    os.kill(gateway, signal.SIGKILL)
    recovery.wait_for()
    assert (recovery.get_attribute("href") or "").startswith(freehold.keeper_url)
    page.context.set_offline(False)
    expect(recovery).to_have_count(0, timeout=20_000)
    page.get_by_text("Live", exact=True).wait_for()
    assert page.get_by_label("Host").input_value() == "half.typed.exam"
    assert page.evaluate("window.same") is True
    assert _gateway_of(freehold) != gateway


def _gateway_of(freehold: Freehold) -> int:
    for pid in freehold.family():
        if "freehold.gateway" in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise AssertionError("no gateway runs")


def test_the_keyboard_finds_every_page(freehold: Freehold, page: Page) -> None:
    go(page, freehold, "/history")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.get_by_role("heading", name="Network").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("settings")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Settings").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_token_is_made_shown_once_and_revoked(freehold: Freehold, page: Page) -> None:
    go(page, freehold, "/settings/access")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make token").click()
    secret = page.locator(".secret").inner_text()
    assert secret.startswith("fh_")
    page.get_by_role("button", name="Done").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("button", name="Revoke laptop")).to_have_count(0)


def test_every_page_fits_a_phone(freehold: Freehold, page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for path in ("/history", "/history?view=everything", "/files", "/terminal", "/network", "/settings"):
        go(page, freehold, path)
        page.get_by_role("navigation", name="Pages").wait_for()
        wide = page.evaluate(
            "document.querySelector('main').scrollWidth > innerWidth || document.body.scrollWidth > innerWidth"
        )
        assert not wide, path
