"""Terminals in a real browser: search, copy and paste, names, links, sizes, and the keys of a phone."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.support.browser import DESKTOP, PHONE, wait_for_promise
from tests.support.running_freehold import RunningFreehold

pytestmark = pytest.mark.shared_processes


@pytest.fixture(autouse=True)
def terminal(freehold: RunningFreehold, page: Page) -> None:
    """A new terminal in the page, which may use the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=freehold.pages)
    page.set_viewport_size(DESKTOP)
    page.goto(freehold.pages + "/terminal")
    page.get_by_text("Live", exact=True).wait_for(state="attached")
    with page.expect_response(lambda answer: answer.url.endswith("/v1/terminals") and answer.status == 201) as made:
        page.get_by_role("button", name=re.compile("Open a terminal|New terminal")).first.click()
    screen = page.locator(f".terminal-screen[data-terminal='{made.value.json()['id']}']:not([hidden])")
    expect(screen.locator(".xterm-rows")).to_contain_text("$")


def screen(page: Page) -> Locator:
    return page.locator(".terminal-screen:not([hidden]) .xterm-rows")


def type_text(page: Page, text: str) -> None:
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.type(text)


def test_search_finds_text_in_the_scrollback(page: Page) -> None:
    type_text(page, "for i in $(seq 1 300); do echo row-$i-; done; echo done-$((1+1))\n")
    expect(screen(page)).to_contain_text("done-2")
    expect(screen(page)).not_to_contain_text("row-7-")
    page.keyboard.press("Control+f")
    field = page.get_by_role("searchbox", name="Find in this terminal")
    field.fill("row-7-")
    expect(screen(page)).to_contain_text("row-7-")
    expect(page.get_by_role("search")).to_contain_text("1 of 1")
    field.fill("row-")
    expect(page.get_by_role("search")).to_contain_text(re.compile(r"of 30[01]"))
    field.fill("nowhere to be seen")
    expect(page.get_by_role("search")).to_contain_text("no match")
    page.keyboard.press("Escape")
    expect(page.get_by_role("search")).to_have_count(0)
    type_text(page, "echo again-$((2+2))\n")
    expect(screen(page)).to_contain_text("again-4")


def test_text_is_copied_and_pasted_by_keys(page: Page) -> None:
    type_text(page, "clear; echo copied-$((3+4))\n")
    row = screen(page).locator("div", has_text="copied-7").last
    expect(row).to_be_visible()
    row.dblclick(position={"x": 20, "y": 6}, force=True)
    page.keyboard.press("Control+Shift+C")
    wait_for_promise(page, "navigator.clipboard.readText().then((text) => text.includes('copied'))")
    page.evaluate("navigator.clipboard.writeText('echo pasted-$((5+5))')")
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.press("Control+Shift+V")
    expect(screen(page)).to_contain_text("echo pasted-$((5+5))")
    page.keyboard.press("Enter")
    expect(screen(page)).to_contain_text("pasted-10")


def test_no_escape_sequence_writes_the_clipboard(page: Page) -> None:
    page.evaluate("navigator.clipboard.writeText('mine')")
    for end in ("\\007", "\\033\\\\"):
        for where in ("c", "p", "", "cs0"):
            type_text(page, f"printf '\\033]52;{where};cHduZWQ={end}'\n")
    type_text(page, "printf '\\033]52;c;?\\007'; echo over-$((6+6))\n")
    expect(screen(page)).to_contain_text("over-12")
    assert page.evaluate("navigator.clipboard.readText()") == "mine"


def press_link(page: Page, address: str, words: str, *, opens: bool) -> None:
    """Print a link with a text of its own, and click it."""
    type_text(page, f"clear; printf '\\033]8;;{address}\\033\\\\{words}\\033]8;;\\033\\\\ after-%s\\n' {words}\n")
    expect(screen(page)).to_contain_text(f"{words} after-{words}")
    place = screen(page).locator("div", has_text=f"{words} after-{words}").first.bounding_box()
    assert place is not None
    x, y = place["x"] + 20, place["y"] + place["height"] / 2
    page.mouse.move(x, y + 200)
    page.mouse.move(x, y)
    if opens:
        expect(page.locator(".terminal-screen:not([hidden]) .xterm-cursor-pointer")).to_be_attached()
    page.mouse.click(x, y)


def test_a_link_that_a_program_made_says_where_it_leads_before_it_is_opened(page: Page) -> None:
    press_link(page, "https://evil.example/login?a=1", "my-bank", opens=True)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("https://evil.example/login?a=1")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    refused = ("javascript:window.pwned=1", "data:text/html,<script>1</script>", "file:///etc/passwd", "ftp://x")
    for number, address in enumerate(refused):
        press_link(page, address, f"press-{number}", opens=False)
    press_link(page, "https://second.example/", "last-one", opens=True)
    expect(dialog).to_contain_text("https://second.example/")
    assert len(page.context.pages) == 1
    with page.expect_popup() as opening:
        dialog.get_by_role("button", name="Open").click()
    assert opening.value.evaluate("window.opener") is None
    opening.value.close()


def test_colours_of_24_bits_are_shown_under_the_content_policy(page: Page) -> None:
    type_text(page, "clear; printf '\\033[38;2;200;30;40mtrue-red\\033[0m\\n'\n")
    red = screen(page).locator("span", has_text=re.compile("^true-red$"))
    expect(red).to_have_css("color", "rgb(200, 30, 40)")


def test_a_terminal_keeps_the_name_it_was_given(page: Page) -> None:
    page.get_by_role("tab", selected=True).focus()
    page.keyboard.press("F2")
    page.get_by_role("textbox", name="Name").fill("<b>builds</b>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", selected=True)).to_have_text("<b>builds</b>")
    page.reload()
    expect(page.get_by_role("tab", name="<b>builds</b>")).to_be_visible()


def test_the_program_learns_the_new_size_and_survives_a_reload(page: Page) -> None:
    type_text(page, "trap 'echo now-$(tput cols)' WINCH; echo wide-$(tput cols)\n")
    expect(screen(page)).to_contain_text(re.compile(r"wide-1[0-9]{2}"))
    page.set_viewport_size({"width": 800, "height": 700})
    expect(screen(page)).to_contain_text(re.compile(r"now-[4-9][0-9]\b"))
    page.reload()
    expect(screen(page)).to_contain_text("wide-1")
    type_text(page, "echo back-$((8+8))\n")
    expect(screen(page)).to_contain_text("back-16")


def test_a_phone_has_the_keys_that_its_keyboard_lacks(page: Page) -> None:
    page.set_viewport_size(PHONE)
    keys = page.get_by_role("toolbar", name="Keys")
    expect(keys).to_be_visible()
    type_text(page, "cat > /dev/null\n")
    keys.get_by_role("button", name="Control").click()
    type_text(page, "c")
    # The terminal drops what is typed before the interrupt has ended the program.
    expect(screen(page)).to_contain_text(re.compile(r"\^C\s*\S*\$"))
    type_text(page, "echo free-$((9+9))\n")
    expect(screen(page)).to_contain_text("free-18")
    expect(keys.get_by_role("button", name="Control")).to_have_attribute("aria-pressed", "false")
    keys.get_by_role("button", name="Up").click()
    page.keyboard.press("Enter")
    expect(screen(page).get_by_text("free-18", exact=True)).to_have_count(2)
    type_text(page, "touch onlyhere && echo made-$((5+6))\n")
    expect(screen(page)).to_contain_text("made-11")
    type_text(page, "ls onl")
    keys.get_by_role("button", name="Tab").click()
    expect(screen(page)).to_contain_text("ls onlyhere")
    assert not page.evaluate("document.querySelector('main').scrollWidth > innerWidth")


BOMBS = (
    r"A\033[2147483647b",
    r"\033[2147483647L\033[2147483647M\033[2147483647S\033[2147483647T",
    r"\033[2147483647@\033[2147483647P\033[2147483647X\033[2147483647I\033[2147483647Z",
    r"\302\2332147483647b",
    r"\033[8;9999;9999t\033[3;9999;9999t",
)
FLOODS = (
    "a' + '\\u0301' * 3_000_000 + '",
    "\\x1b]0;' + 't' * 3_000_000 + '\\x07",
    "\\x1bP' + 'd' * 3_000_000 + '\\x1b\\\\",
    "' + '\\x1b]0;title\\x07' * 100_000 + '",
    "' + '\\x1b[500S\\x1b[500L' * 10_000 + '",
)


def test_terminal_bombs_are_drawn_as_nothing_much_now_and_after_a_reload(page: Page) -> None:
    """After each of them the terminal still answers; after a reload, when all of it is drawn again, too."""
    for bomb in BOMBS:
        type_text(page, f"printf '{bomb}'; echo over-$((1+1))\n")
    for number, flood in enumerate(FLOODS):
        type_text(page, f"clear; python3 -c \"print('{flood}')\"; echo calm-$(({number}+10))\n")
        expect(screen(page)).to_contain_text(f"calm-{number + 10}")
    page.reload()
    expect(screen(page)).to_contain_text("calm-14")
    type_text(page, "echo alive-$((7+7))\n")
    expect(screen(page)).to_contain_text("alive-14")


def test_a_terminal_is_closed_without_being_opened(freehold: RunningFreehold, page: Page) -> None:
    """After a page that was cut off, and from the list, no terminal is connected before the owner chooses one."""
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    bomb = page.locator(".terminal-screen:not([hidden])").get_attribute("data-terminal")
    assert bomb is not None
    # What a tab leaves behind that was ended while it did not answer.
    page.add_init_script(f"sessionStorage.setItem('freehold.terminal.opened', '{bomb}')")
    page.reload()
    everything = page.get_by_role("region", name="All terminals")
    expect(everything).to_contain_text("This page was cut off while a terminal was open.")
    row = everything.get_by_role("listitem").filter(has_text="was open")
    row.get_by_role("button", name="Close").click()
    expect(row).to_have_count(0)
    assert not [address for address in sockets if bomb in address]
    page.goto(f"{freehold.pages}/terminal?list")
    page.get_by_role("button", name="New terminal").click()
    expect(screen(page)).to_contain_text("$")
    page.get_by_role("button", name="All terminals").click()
    expect(everything).to_be_visible()
    expect(screen(page)).to_have_count(0)
