"""The desktop in a whole Freehold: shown to the owner on an origin of its own, used by an agent, closed to everybody else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Frame, expect
from tests.support.browser import OwnerPage, open_owner_page, run_browser
from tests.support.condition import until
from tests.support.running_freehold import KEY, FreeholdOptions, RunningFreehold
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT, WORKSPACE
from freehold.desktop.display import GROUP

needs_desktop = pytest.mark.skipif(
    not all(Path(f"/usr/bin/{name}").exists() for name in ("Xvnc", "icewm", "xdotool", "maim", "xterm")),
    reason="the programs of a desktop are not installed: tools/system-packages test",
)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes, needs_desktop]
FREEHOLD = FreeholdOptions(
    agents=("builtin",),
    manifest="""
[agents.builtin]
model = "local"

[egress]
mode = "deny"

[desktop]
enabled = true

[security.exceptions.desktop]
reason = "agents use windows"
""",
)
GROUPS = "cat /proc/[0-9]*/comm"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with run_browser() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner_page(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[OwnerPage]:
    async with open_owner_page(browser, freehold) as owner_page:
        yield owner_page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(freehold: RunningFreehold) -> AsyncIterator[Computer]:
    """A second link to the computer of the Freehold, to look inside."""
    await until(freehold.is_connected)
    async with await Computer.connect(freehold.home.computer_socket()) as computer:
        yield computer


async def list_programs(computer: Computer) -> set[str]:
    return set((await computer.run(GROUPS)).stdout.decode().split())


async def open_desktop(owner_page: OwnerPage) -> Frame:
    """The page of the control center with the desktop in it, connected."""
    await owner_page.go("/desktop")
    shown = owner_page.page.frame_locator("iframe[title='Desktop']")
    await expect(shown.locator("html[data-connected] canvas")).to_be_visible()
    (frame,) = [one for one in owner_page.page.frames if "desktop.preview.localhost" in one.url]
    return frame


async def test_it_starts_when_it_is_opened_is_used_by_hand_and_stops(
    owner_page: OwnerPage, freehold: RunningFreehold, computer: Computer
) -> None:
    (site,) = [one for one in (await freehold.call("GET", "/v1/preview/sites"))["sites"] if one["name"] == "desktop"]
    assert site == {"name": "desktop", "enabled": True, "running": False}
    assert "Xvnc" not in await list_programs(computer)
    frame = await open_desktop(owner_page)

    async def has_started() -> bool:  # the desktop is shown without its window manager if that takes long
        return {"Xvnc", "icewm"} <= await list_programs(computer)

    await until(has_started)
    # Typed in the owner's browser, done in the computer.
    xterm = "xterm -e sh -c 'read line; echo $line > typed'"
    await computer.run(f"DISPLAY=:1 setsid --fork {xterm} >/dev/null 2>&1", cwd=WORKSPACE, apart="desktop")

    async def has_window() -> bool:
        search = "DISPLAY=:1 xdotool search --onlyvisible --class xterm windowfocus"
        return (await computer.run(search, apart="desktop")).ok

    await until(has_window)
    await frame.locator("canvas").focus()
    await owner_page.page.keyboard.type("from the page")
    await owner_page.page.keyboard.press("Enter")
    await until(lambda: freehold.file("typed").exists() and freehold.file("typed").read_text() == "from the page\n")
    await owner_page.page.get_by_role("button", name="Stop").click()
    await expect(owner_page.page.get_by_text("The desktop has ended")).to_be_visible()
    await until(lambda: _is_gone(computer))
    assert owner_page.violations == []


async def _is_gone(computer: Computer) -> bool:
    return not {"Xvnc", "icewm", "xterm"} & await list_programs(computer)


async def test_the_viewer_shares_nothing_with_the_control_center(owner_page: OwnerPage) -> None:
    """The attack: what is shown on the desktop's origin reads the control center's cookies and storage, or calls its API."""
    frame = await open_desktop(owner_page)
    assert await frame.evaluate("location.hostname") == "desktop.preview.localhost"
    assert await frame.evaluate("document.cookie") == ""
    stored = "(() => { try { return localStorage.getItem('freehold.sign-in') } catch (e) { return null } })()"
    assert await frame.evaluate(stored) is None
    assert await frame.evaluate("(() => { try { return parent.document.title } catch (e) { return e.name } })()") == (
        "SecurityError"
    )
    control = owner_page.freehold.pages
    tried = await frame.evaluate(
        f"fetch('{control}/v1/me', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
    )
    assert tried == "refused"
    owner_page.violations.clear()  # the policy of the page has refused that request, and says so
    served = await owner_page.page.evaluate("fetch('/desktop/viewer.js').then((answer) => answer.status)")
    assert served in (401, 404)


async def test_a_page_in_a_browser_on_the_desktop_reaches_nothing_of_the_control_center(
    owner_page: OwnerPage, freehold: RunningFreehold, computer: Computer
) -> None:
    """The attack from the other side: Chromium in a window of the desktop opens a page that asks for it with cookies."""
    await open_desktop(owner_page)
    port = freehold.harness.gateway_port
    places = [
        f"http://localhost:{port}/v1/me",
        f"http://desktop.preview.localhost:{port}/",
        f"{freehold.pages}/v1/me",
        f"http://127.0.0.1:{freehold.harness.keeper_port}/",
        "/shown.html",  # its own server, so that a refusal means something
    ]
    freehold.file("shown.html").write_text(
        "<script>const ask = (place) => fetch(place, {mode: 'no-cors', credentials: 'include'})"
        f".then(() => 'read', () => 'refused'); Promise.all({places}.map(ask))"
        ".then((said) => fetch('/said-' + said.join('-') + '-cookies-' + document.cookie))</script>"
    )
    await computer.run(
        "setsid --fork python3 -m http.server 8199 --bind 127.0.0.1 >/dev/null 2>served.txt", cwd=WORKSPACE, apart=GROUP
    )
    options = "--no-sandbox --no-first-run --disable-dev-shm-usage --user-data-dir=/tmp/on-the-desktop"
    chromium = f"DISPLAY=:1 setsid --fork /usr/lib/chromium/chromium {options} http://127.0.0.1:8199/shown.html"

    async def is_served() -> bool:
        return (await computer.run("curl -s http://127.0.0.1:8199/", apart=GROUP)).ok

    await until(is_served)
    await computer.run(f"{chromium} >/dev/null 2>&1", cwd=WORKSPACE, apart=GROUP)
    served = freehold.file("served.txt")
    await until(lambda: "/said-" in served.read_text())
    assert "/said-refused-refused-refused-refused-read-cookies- " in served.read_text()
    # By the proxy, which such a page would be given to reach the network. No rule may name these places.
    for place in places[:4]:
        answer = await computer.run(
            f"curl -s -o /dev/null -w '%{{http_code}}' --noproxy '' -x http://127.0.0.1:{EGRESS_PORT} {place}",
            apart=GROUP,
        )
        assert answer.text in ("400", "403"), (place, answer.text)
    await computer.run("pkill -x chromium; pkill -x python3", apart=GROUP)


async def test_only_the_owners_browser_and_only_its_own_page_reach_the_desktop(
    owner_page: OwnerPage, freehold: RunningFreehold
) -> None:
    await open_desktop(owner_page)
    port = freehold.harness.gateway_port
    host = f"desktop.preview.localhost:{port}"
    cookies = await owner_page.context.cookies(f"http://{host}/")
    passes = "; ".join(f"{one['name']}={one['value']}" for one in cookies)
    assert "freehold-preview" in passes

    async def try_socket(cookie: str, origin: str) -> int:
        try:
            async with connect(
                f"ws://{host}/socket",
                additional_headers={"cookie": cookie},
                origin=origin,  # type: ignore[arg-type]
                proxy=None,
                host="127.0.0.1",
                port=port,
            ) as socket:
                assert await socket.recv() == b"RFB 003.008\n"
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    assert await try_socket(passes, f"http://{host}") == 101
    assert await try_socket("", f"http://{host}") == 401
    # A page that an agent serves on a port is on a sibling host, and in the same partition of cookies.
    assert await try_socket(passes, f"http://5173.preview.localhost:{port}") == 403
    assert await try_socket(passes, freehold.pages) == 403
    with_token = await freehold.http.get("/", headers={"host": host})
    assert with_token.status_code == 401


async def test_an_agent_uses_it_and_the_conversation_shows_the_pictures(
    freehold: RunningFreehold, computer: Computer
) -> None:
    session = await freehold.open("builtin")
    script = "\n".join(
        [
            'CALL desktop_start {"command": "xterm -T Agent"}',
            "CALL desktop_screenshot {}",
            'CALL desktop_click {"x": 600, "y": 400}',
        ]
    )
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, script)
    shown = [event["data"] for event in await freehold.events(session) if event["kind"] == "pictures"]
    assert len(shown) == 2, shown
    assert "A picture of the desktop" in shown[0]["text"]
    assert "xterm" in await list_programs(computer)


async def test_an_agent_types_and_presses_keys_in_a_window(
    owner_page: OwnerPage, freehold: RunningFreehold, computer: Computer
) -> None:
    await open_desktop(owner_page)
    await computer.run("pkill -x xterm", apart="desktop")  # its windows could take the focus
    xterm = "xterm -T Typed -e sh -c 'read line; echo $line > agent-typed'"
    await computer.run(f"DISPLAY=:1 setsid --fork {xterm} >/dev/null 2>&1", cwd=WORKSPACE, apart="desktop")

    async def has_focus() -> bool:
        focus = "DISPLAY=:1 xdotool search --onlyvisible --name '^Typed$' windowfocus getwindowfocus getwindowname"
        return (await computer.run(focus, apart="desktop")).text.strip() == "Typed"

    await until(has_focus)
    session = await freehold.open("builtin")
    script = 'CALL desktop_type {"text": "from an agent: ~A1"}\nCALL desktop_press {"keys": "Return"}'
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, script)
    file = freehold.file("agent-typed")
    await until(lambda: file.exists() and file.read_text() == "from an agent: ~A1\n")
    shown = [event["data"] for event in await freehold.events(session) if event["kind"] == "pictures"]
    assert len(shown) == 1, shown


async def test_agents_can_neither_signal_nor_inspect_it_and_it_has_the_walls_of_the_computer(
    owner_page: OwnerPage, computer: Computer
) -> None:
    await open_desktop(owner_page)
    server = (await computer.run("pgrep -x Xvnc")).text.strip()
    for attempt in (f"kill -9 {server}", f"cat /proc/{server}/environ", f"cat /proc/{server}/maps"):
        assert not (await computer.run(attempt, apart="s1")).ok, attempt
    status = (await computer.run(f"cat /proc/{server}/status")).text
    assert "CapEff:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
    # It listens on loopback of the computer alone, and no key of the owner is near it.
    listening = {one.port for one in await computer.listening_sockets()}
    assert 5901 in listening
    outside = await asyncio.create_subprocess_exec(
        "grep", "-c", ":170D ", "/proc/net/tcp", stdout=asyncio.subprocess.PIPE
    )
    counted, _ = await outside.communicate()
    assert counted.strip() == b"0"
    seen = await computer.run(f"tr '\\0' '\\n' < /proc/{server}/environ", apart="desktop")
    assert "DISPLAY=:1" in seen.text
    assert KEY not in seen.text


async def test_the_kill_switch_ends_it(owner_page: OwnerPage, freehold: RunningFreehold, computer: Computer) -> None:
    await open_desktop(owner_page)
    await freehold.call("POST", "/v1/stop", why="test")
    await until(lambda: _is_gone(computer))
    await freehold.call("POST", "/v1/stop/lift")


async def test_the_exception_is_in_status(freehold: RunningFreehold) -> None:
    (one,) = (await freehold.call("GET", "/v1/programs"))["exceptions"]
    assert (one["name"], one["reason"]) == ("desktop", "agents use windows")
    assert "Clipboard: not shared" in one["adds"]
    assert "Exception desktop: agents use windows" in freehold.harness.run("status").stdout
