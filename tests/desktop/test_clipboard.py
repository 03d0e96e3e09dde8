"""The clipboard between the owner's browser and the desktop: each direction is open only if the owner allows it."""

import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Frame, expect
from tests.support.browser import OwnerPage, open_owner_page, run_browser
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.computer.library.tunnel import Tunnel
from freehold.desktop.exception import RFB_PORT

needs_desktop = pytest.mark.skipif(
    not all(Path(f"/usr/bin/{name}").exists() for name in ("Xvnc", "icewm", "xdotool", "maim", "xterm")),
    reason="the programs of a desktop are not installed: tools/system-packages test",
)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes, needs_desktop]
MANIFEST = """
[desktop]
enabled = true
{clipboard}

[security.exceptions.desktop]
reason = "the clipboard is tested"
"""
XTERM = "DISPLAY=:1 setsid --fork xterm -xrm 'XTerm*selectToClipboard: true' -xrm 'XTerm*allowWindowOps: true'"
# An escape sequence copies: no mouse that could miss.
COPY = 'printf "\\033]52;c;%s\\a" "$(printf %s "$0" | base64)"; exec cat'
READ = 'while read -r line; do printf "%s\\n" "$line" >> pasted; done'
PASTE = "DISPLAY=:1 xdotool search --onlyvisible --name '^Reader$' windowfocus key shift+Insert Return"
HAS_MANAGER = "DISPLAY=:1 xdotool search --onlyvisible --limit 1 --class ."
# RFB, the protocol of viewers (RFC 6143).
NO_PASSWORD = 1
SET_ENCODINGS, UPDATE_REQUEST, CLIENT_CUT_TEXT = 2, 3, 6
UPDATE, BELL, SERVER_CUT_TEXT = 0, 2, 3
RAW, NEW_SIZE = 0, -223
REFUSED = "blocked because of a permissions policy"


@dataclass(frozen=True)
class SharedDesktop:
    """A desktop whose clipboard is set to `clipboard`, seen by the owner and from inside."""

    clipboard: str
    freehold: RunningFreehold
    owner_page: OwnerPage
    computer: Computer
    frame: Frame

    @property
    def is_open_inward(self) -> bool:
        return self.clipboard in ("to-desktop", "both")

    @property
    def is_open_outward(self) -> bool:
        return self.clipboard in ("from-desktop", "both")

    async def copy_inside(self, text: str) -> None:
        """A program on the desktop copies this, and the next program pastes it."""
        await self.run(f"{XTERM} -T Copier -e bash -c '{COPY}' '{text}' >/dev/null 2>&1")
        await self.wait_pasted(text)

    async def run(self, command: str) -> bool:
        return (await self.computer.run(command, cwd=WORKSPACE, apart="desktop")).ok

    async def paste(self) -> str:
        """Paste once more into the reader. Returns everything that it has been given so far."""
        await self.run(PASTE)
        file = self.freehold.file("pasted")
        return file.read_text() if file.exists() else ""

    async def wait_pasted(self, text: str) -> None:
        async def is_pasted() -> bool:
            return text in await self.paste()

        await until(is_pasted)

    async def paste_anew(self) -> str:
        """What the reader gets for some pastes from now on: each is answered before the last line is written."""
        before = await self.paste()

        async def has_more() -> str:
            given = (await self.paste())[len(before) :]
            return given if given.count("\n") > 3 else ""

        return await until(has_more)

    async def read_browser(self) -> str:
        return str(await self.owner_page.page.evaluate("navigator.clipboard.readText()"))

    async def is_left(self) -> bool:
        return not await self.frame.evaluate("document.hasFocus()")

    async def copy_outside(self, text: str) -> None:
        """In the control center, from which the owner then goes to the desktop. Returns when it is there, if allowed."""
        await self.owner_page.page.get_by_role("button", name="Reload").focus()
        await until(self.is_left)
        await self.owner_page.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
        await self.frame.locator("canvas").focus()
        if self.is_open_inward:
            await self.wait_pasted(text)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with run_browser() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["off", "to-desktop", "from-desktop", "both"])
async def desktop(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SharedDesktop]:
    """One Freehold for each value. `off` is the default, so it is not in the manifest."""
    line = "" if request.param == "off" else f'clipboard = "{request.param}"'
    options = FreeholdOptions(manifest=MANIFEST.format(clipboard=line))
    async with (
        run_freehold(tmp_path_factory.mktemp("freehold"), options) as freehold,
        open_owner_page(browser, freehold) as owner_page,
    ):
        await until(freehold.is_connected)
        async with await Computer.connect(freehold.home.computer_socket()) as computer:
            frame = await open_desktop(owner_page)
            desktop = SharedDesktop(request.param, freehold, owner_page, computer, frame)
            await until(lambda: desktop.run(HAS_MANAGER))
            await desktop.run(f"{XTERM} -T Reader -e bash -c '{READ}' >/dev/null 2>&1")
            await until(lambda: desktop.run(PASTE))
            yield desktop


async def open_desktop(owner_page: OwnerPage) -> Frame:
    """Connected, in a browser that lets every page use the clipboard: the walls that remain are those of Freehold."""
    await owner_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await owner_page.go("/desktop")
    shown = owner_page.page.frame_locator("iframe[title='Desktop']")
    await expect(shown.locator("html[data-connected] canvas")).to_be_visible()
    (frame,) = [one for one in owner_page.page.frames if "desktop.preview.localhost" in one.url]
    return frame


async def test_text_that_the_owner_copies_reaches_the_desktop_only_if_allowed(desktop: SharedDesktop) -> None:
    await desktop.copy_outside("owner-copied")
    tried = await desktop.frame.evaluate("navigator.clipboard.readText().catch((error) => error.message)")
    if desktop.is_open_inward:
        assert tried == "owner-copied"
    else:
        assert REFUSED in tried
        assert (await desktop.paste_anew()).strip() == ""


async def test_text_that_is_copied_on_the_desktop_reaches_the_owner_only_if_allowed(desktop: SharedDesktop) -> None:
    text = f"desktop-copied-{desktop.clipboard}"  # the browser keeps what an earlier Freehold has given to it
    await desktop.copy_outside("owner-keeps")
    await desktop.copy_inside(text)
    if desktop.is_open_outward:

        async def has_arrived() -> bool:
            return await desktop.read_browser() == text

        await until(has_arrived)
    else:
        tried = await desktop.frame.evaluate("navigator.clipboard.writeText('forced').catch((error) => error.message)")
        assert REFUSED in tried
        assert await desktop.read_browser() == "owner-keeps"


async def test_the_server_of_the_desktop_refuses_a_viewer_that_ignores_the_setting(desktop: SharedDesktop) -> None:
    """The attack: a viewer without our script, and a program on the desktop that changes the parameters of its server."""
    for name in ("AcceptCutText", "SendCutText"):
        await desktop.run(f"vncconfig -display :1 -set {name}=1")
    async with await connect_viewer(desktop.computer) as tunnel:
        await tunnel.write(struct.pack(">B3xI", CLIENT_CUT_TEXT, len(b"forced-in")) + b"forced-in")
        await read_cut_texts(tunnel)  # so the server has read what was sent before
        if desktop.is_open_inward:
            await desktop.wait_pasted("forced-in")
        else:
            assert "forced-in" not in await desktop.paste_anew()
        await desktop.copy_inside("forced-out")
        await desktop.paste_anew()  # so the server has asked for the text, if it ever does
        if desktop.is_open_outward:

            async def has_come_out() -> bool:
                return b"forced-out" in await read_cut_texts(tunnel)

            await until(has_come_out)
        else:
            assert await read_cut_texts(tunnel) == []


async def connect_viewer(computer: Computer) -> Tunnel:
    """A plain viewer of RFB 3.8. It accepts that the owner's viewer changes the size."""
    tunnel = await computer.forward(RFB_PORT)
    await tunnel.write(await tunnel.read_exactly(12))
    (count,) = await tunnel.read_exactly(1)
    assert NO_PASSWORD in await tunnel.read_exactly(count)
    await tunnel.write(bytes([NO_PASSWORD]))
    assert await tunnel.read_exactly(4) == bytes(4)
    await tunnel.write(b"\x01")  # beside the owner's viewer
    await tunnel.read_exactly(20)
    await tunnel.read_exactly(*struct.unpack(">I", await tunnel.read_exactly(4)))
    await tunnel.write(struct.pack(">BxHii", SET_ENCODINGS, 2, RAW, NEW_SIZE))
    return tunnel


async def read_cut_texts(tunnel: Tunnel) -> list[bytes]:
    """Ask for one pixel, and return the copied texts that come before it."""
    await tunnel.write(struct.pack(">BBHHHH", UPDATE_REQUEST, 0, 0, 0, 1, 1))
    found: list[bytes] = []
    while (kind := (await tunnel.read_exactly(1))[0]) != UPDATE:
        if kind == BELL:
            continue
        assert kind == SERVER_CUT_TEXT
        found.append(await tunnel.read_exactly(*struct.unpack(">3xI", await tunnel.read_exactly(7))))
    (rectangles,) = struct.unpack(">xH", await tunnel.read_exactly(3))
    for _ in range(rectangles):
        width, height, encoding = struct.unpack(">4xHHi", await tunnel.read_exactly(12))
        await tunnel.read_exactly(width * height * 4 if encoding == RAW else 0)
    return found
