"""Every page of the control center in a real browser, with a complete Freehold."""

import json
import os
import re
import signal

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from tests.support.browser import wait_for_promise
from tests.support.condition import wait_until
from tests.support.running_freehold import RunningFreehold

pytestmark = pytest.mark.shared_processes

ASK = (
    "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT asked.example.com:443 HTTP/1.1\\r\\n"
    "Host: asked.example.com:443\\r\\n\\r\\n' >&3; head -n 1 <&3\n"
)
PUT = """([path, text]) => asOwner('/v1/files/content?path=' + encodeURIComponent(path), {method: 'PUT', body: text})
  .then((answer) => answer.status)"""


def write(page: Page, path: str, text: str) -> None:
    assert page.evaluate(PUT, [path, text]) == 200


def go(page: Page, freehold: RunningFreehold, path: str) -> None:
    page.goto(freehold.pages + path)
    page.get_by_text("Live", exact=True).wait_for(state="attached")


def open_terminal(page: Page) -> None:
    """Open a new terminal beside the others."""
    with page.expect_response(lambda answer: answer.url.endswith("/v1/terminals") and answer.status == 201) as made:
        page.get_by_role("button", name=re.compile("Open a terminal|New terminal")).first.click()
    fresh = page.locator(f".terminal-screen[data-terminal='{made.value.json()['id']}']:not([hidden])")
    fresh.locator(".xterm-rows").get_by_text("$").first.wait_for()


def type_line(page: Page, text: str) -> None:
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.type(text)


def expect_output(page: Page, text: str) -> None:
    expect(page.locator(".terminal-screen:not([hidden]) .xterm-rows")).to_contain_text(text)


def test_history_shows_a_change_and_takes_it_back(freehold: RunningFreehold, page: Page) -> None:
    """The entry appears without a reload, its lines are shown, the preview names the file, and the undo changes the disk."""
    go(page, freehold, "/history")
    rows = page.locator(".history-entry")
    expect(rows.last).to_contain_text("Found at start")  # what is written earlier belongs to it
    write(page, "poem.txt", "roses\n")
    expect(rows.first).to_contain_text("1 added")
    before = rows.count()
    write(page, "poem.txt", "violets\n")
    expect(rows).to_have_count(before + 1)
    rows.first.get_by_role("button", expanded=False).first.click()
    expect(rows.first.locator("tr[data-kind=added] .diff-table-text")).to_have_text("violets")
    expect(rows.first.locator("tr[data-kind=removed] .diff-table-text")).to_have_text("roses")

    page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("workspace/poem.txt")
    assert (freehold.home.workspace / "poem.txt").read_text() == "violets\n"
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(rows.first).to_contain_text("Undo of entry")
    assert (freehold.home.workspace / "poem.txt").read_text() == "roses\n"
    expect(rows.nth(1)).to_have_attribute("data-undone", "true")

    page.get_by_role("button", name="Redo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Redo", exact=True).click()
    expect(rows.first).to_contain_text("Redo of entry")
    assert (freehold.home.workspace / "poem.txt").read_text() == "violets\n"


def test_a_file_is_edited_and_a_change_under_the_editor_is_a_conflict(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/files")
    write(page, "plan.md", "one\n")
    page.get_by_role("treeitem", name="plan.md").click()
    content = page.locator(".files-editor .cm-content")
    expect(content).to_contain_text("one")
    content.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("two")
    page.keyboard.press("Control+s")
    # That nothing is unsaved is also true before the page has seen what was typed.
    wait_until(lambda: (freehold.home.workspace / "plan.md").read_text() == "one\ntwo")
    expect(page.get_by_text("not saved")).to_have_count(0)

    write(page, "plan.md", "theirs\n")
    expect(content).to_contain_text("theirs")  # there was no unsaved text
    content.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("mine")
    write(page, "plan.md", "theirs again\n")
    page.get_by_text("changed on disk while you were editing").wait_for()
    expect(content).to_contain_text("mine")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("changed on disk while you were editing").wait_for()
    assert (freehold.home.workspace / "plan.md").read_text() == "theirs again\n"
    page.get_by_role("button", name="Keep my version").click()
    expect(page.get_by_text("changed on disk")).to_have_count(0)
    assert (freehold.home.workspace / "plan.md").read_text() == "theirs\nmine"


def test_a_terminal_is_typed_into_and_comes_back_after_a_reload(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(page, "echo one-$((40+2))\n")
    expect_output(page, "one-42")
    page.reload()
    expect_output(page, "one-42")
    type_line(page, "echo two-$((40+3))\n")
    expect_output(page, "two-43")


def test_a_network_request_is_answered_from_any_page(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(page, ASK)
    bar = page.get_by_role("alertdialog")
    expect(bar).to_contain_text("asked.example.com:443")
    page.get_by_role("link", name="Files").click()
    bar.get_by_role("button", name="Never").click()
    expect(bar).to_have_count(0)
    page.get_by_role("button", name="System").click()
    page.get_by_role("link", name="Network").click()
    rule = page.locator(".network-rule", has_text="asked.example.com")
    expect(rule).to_contain_text("deny")
    rule.get_by_role("button", name="Remove").click()
    expect(rule).to_have_count(0)
    page.get_by_role("link", name="Terminal").click()
    expect_output(page, "HTTP/1.1 403")


def drop_port_events(socket: WebSocketRoute) -> None:
    server = socket.connect_to_server()

    def forward(message: str | bytes) -> None:
        content = json.loads(message)
        if (content.get("type"), content.get("topic")) != ("event", "ports"):
            socket.send(message)

    server.on_message(forward)


def test_a_page_with_an_error_leaves_the_other_pages_and_the_kill_switch_usable(
    freehold: RunningFreehold, page: Page
) -> None:
    """The gateway's reply has a wrong form, so that drawing the page throws. No event replaces it meanwhile."""
    page.route_web_socket("**/v1/socket", drop_port_events)
    page.route("**/v1/preview/ports", lambda route: route.fulfill(json={"ports": 5}))
    go(page, freehold, "/preview")
    notice = page.get_by_role("alert").filter(has_text="Preview has an error")
    expect(notice.get_by_role("button", name="Reload the page")).to_be_visible()
    page.get_by_role("link", name="Files").click()
    expect(page.get_by_role("heading", name="Files")).to_be_visible()
    expect(notice).to_have_count(0)
    page.get_by_role("link", name="Preview").click()
    expect(notice).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_label("Kill switch").get_by_role("button", name="Stop all agents")).to_be_enabled()
    page.get_by_role("link", name="Preview").click()
    expect(notice).to_be_visible()
    page.unroute("**/v1/preview/ports")
    notice.get_by_role("button", name="Reload the page").click()
    expect(page.get_by_role("heading", name="No server is running")).to_be_visible()


def entry_of(page: Page, path: str) -> int:
    """The entry that has a path. History records it some seconds after the last write."""
    return int(
        wait_for_promise(
            page,
            "(path) => asOwner('/v1/history?limit=1&path=' + encodeURIComponent(path))"
            ".then((answer) => answer.json()).then((page) => page.entries?.[0]?.id ?? null)",
            path,
        )
    )


def test_script_in_names_titles_and_contents_stays_text(freehold: RunningFreehold, page: Page) -> None:
    """The page fixture fails if a script ran or the content policy had to stop one."""
    go(page, freehold, "/files")
    name = "<img src=x onerror='window.pwned=1'>.html"
    body = "<script>window.pwned=1</script><svg onload='window.pwned=1'>"
    write(page, name, body)
    write(page, "a.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{body}</svg>")
    page.get_by_role("treeitem", name=name).click()
    expect(page.locator(".files-editor .cm-content")).to_contain_text("window.pwned=1")
    page.get_by_role("treeitem", name="a.svg").click()
    expect(page.locator(".files-editor .cm-content")).to_contain_text("xmlns")
    assert page.locator("main img, main iframe, main object, main embed").count() == 0
    go(page, freehold, "/history")
    write(page, f"again {name}", body)
    number = entry_of(page, f"workspace/again {name}")
    entry = page.locator(".history-entry", has=page.get_by_text(f"#{number}", exact=True)).first
    entry.get_by_role("button").first.click()
    expect(entry.locator(".history-file .path", has_text=name).last).to_be_visible()
    expect(entry.locator(".diff-table .diff-table-text", has_text="window.pwned=1").last).to_be_visible()
    go(page, freehold, "/terminal")
    open_terminal(page)
    type_line(
        page, "printf '\\033]0;<img src=x onerror=window.pwned=1>\\007\\033]52;c;cHduZWQ=\\007done-%s\\n' $((1+1))\n"
    )
    expect_output(page, "done-2")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("<img src=x")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert page.evaluate("navigator.clipboard.readText()") != "pwned"
    type_line(page, "printf '\\033]8;;javascript:window.pwned=1\\033\\\\press\\033]8;;\\033\\\\ here-%s\\n' $((1+2))\n")
    expect_output(page, "here-3")
    page.locator(".xterm-rows").get_by_text("press").last.click(force=True)


def test_typed_text_survives_the_death_of_the_gateway(freehold: RunningFreehold, page: Page) -> None:
    """The page says so, links to the recovery page, and continues when the gateway is back."""
    go(page, freehold, "/network")
    page.get_by_label("Host").fill("half.typed.exam")
    # No request gets through, as if the gateway stayed away for long. The browser itself counts as online.
    page.evaluate("() => { window.same = true; Object.defineProperty(navigator, 'onLine', {get: () => true}) }")
    gateway = freehold.harness.pid_of("gateway")
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
    expect(recovery).to_have_count(0)
    page.get_by_text("Live", exact=True).wait_for()
    assert page.get_by_label("Host").input_value() == "half.typed.exam"
    assert page.evaluate("window.same") is True
    assert freehold.harness.pid_of("gateway") != gateway


def test_the_keyboard_finds_every_page(freehold: RunningFreehold, page: Page) -> None:
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


def test_the_palette_finds_files_and_starts_a_session(freehold: RunningFreehold, page: Page) -> None:
    (freehold.home.workspace / "found-by-name.txt").write_text("found")
    go(page, freehold, "/history")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Command").fill("found-by")
    page.get_by_role("option", name="found-by-name.txt").click()
    expect(page.locator(".cm-content")).to_contain_text("found")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Command").fill("new session")
    expect(page.get_by_role("option").first).to_contain_text("New session")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions*")


def test_the_palette_finds_entries_settings_and_lines_of_files(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/history")
    write(page, "deep/tale.txt", "once upon\na quiet zebra slept\n")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Command")
    field.fill("quiet zebra")
    page.get_by_role("option", name="a quiet zebra slept deep/tale.txt:2").click()
    expect(page.locator(".cm-content")).to_contain_text("a quiet zebra slept")
    page.keyboard.press("Control+k")
    field.fill("gateway.port")
    page.get_by_role("option", name="gateway.port Setting").click()
    expect(page.get_by_role("button", name="How to change gateway.port")).to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("found at start")
    page.get_by_role("option").filter(has_text="Found at startEntry 1").first.click()
    expect(page).to_have_url(f"{freehold.pages}/history/diff?old=before&new=1")


def test_the_list_of_shortcuts_begins_at_its_top(freehold: RunningFreehold, page: Page) -> None:
    """Its button for closing is at the end, and does not scroll there when it gets the focus."""
    page.set_viewport_size({"width": 390, "height": 480})
    go(page, freehold, "/history")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet.get_by_role("heading", name="Keyboard shortcuts")).to_be_in_viewport()
    expect(sheet.get_by_text("Open Sessions")).to_be_in_viewport()
    expect(sheet.get_by_role("button", name="Close")).to_be_in_viewport()
    page.keyboard.press("End")
    expect(sheet.get_by_text("Show these shortcuts")).to_be_in_viewport()


def test_a_token_is_created_shown_once_and_revoked(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/access")
    page.get_by_role("button", name="Create a token").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator(".settings-secret").inner_text()
    assert secret.startswith("fh_")
    page.get_by_role("button", name="Done").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("button", name="Revoke laptop")).to_have_count(0)


# The longest that anything moves, in seconds.
LONGEST_MOTION = """() => Math.max(...[...document.querySelectorAll('*')]
  .flatMap((one) => [null, '::before', '::after'].map((part) => getComputedStyle(one, part)))
  .flatMap((style) => [...style.animationDuration.split(','), ...style.transitionDuration.split(',')])
  .map((text) => parseFloat(text) || 0))"""


def test_nothing_moves_for_an_owner_who_asks_for_less_motion(freehold: RunningFreehold, page: Page) -> None:
    """Without a connection a spinner turns as well. For others both move, so that this can fail."""
    go(page, freehold, "/history")
    page.locator(".history-entry").first.wait_for()
    page.context.set_offline(True)
    try:
        page.locator(".bar .spinner").wait_for()
        page.emulate_media(reduced_motion="no-preference")
        assert page.evaluate(LONGEST_MOTION) >= 0.9
        page.emulate_media(reduced_motion="reduce")
        assert page.evaluate(LONGEST_MOTION) <= 0.001
    finally:
        page.context.set_offline(False)
