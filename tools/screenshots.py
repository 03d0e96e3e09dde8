"""`python -m tools.screenshots [PAGE…]`: draws every page of the control center into docs/images, in both sizes and themes.

A whole Freehold is started and lived in for a moment (see `tests/e2e/lived_in.py`); no picture shows anybody's own.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, ViewportSize, async_playwright
from tests.agents.whole import Whole
from tests.e2e.house import FLAGS
from tests.e2e.lived_in import lived_in, sign_in_link

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZES: dict[str, ViewportSize] = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PATIENCE = 60_000
APP = """<!doctype html><meta name=viewport content="width=device-width"><title>Shop</title>
<style>body{font:18px/1.5 system-ui;margin:0;display:grid;place-items:center;min-height:100vh;background:#14181a;color:#e8e6df}
main{text-align:center;padding:2rem}h1{font-size:2.5rem;margin:0}button{font:inherit;padding:.6rem 1.4rem;border:0;
border-radius:99px;background:#8fd0b5;color:#10211a}</style><main><h1>Hello from the computer</h1>
<p>A small shop, and it is dark now.</p><button>Look around</button></main>"""

CLOSE_TERMINALS = """() => fetch('/v1/terminals').then((answer) => answer.json()).then((rows) => Promise.all(
  rows.map((row) => fetch('/v1/terminals/' + row.id, {method: 'DELETE'}))))"""

Draw = Callable[[Page, Whole], Awaitable[None]]


async def _heading(page: Page, whole: Whole) -> None:
    await page.locator("main h1, main h2, main button").first.wait_for()


async def _talk(page: Page, whole: Whole) -> None:
    rows = (await whole.call("GET", "/v1/sessions"))["sessions"]
    session = next(row["id"] for row in rows if row["title"] == "A dark page")
    await page.goto(f"{page.url.partition('/sessions')[0]}/sessions?id={session}")
    await page.get_by_role("log").get_by_text("The page is dark now").wait_for()
    await page.get_by_role("log").get_by_text("for contrast").wait_for()


async def _approval(page: Page, whole: Whole) -> None:
    rows = (await whole.call("GET", "/v1/sessions"))["sessions"]
    session = next(row["id"] for row in rows if row["title"] == "The price of a basket")
    await page.goto(f"{page.url.partition('/sessions')[0]}/sessions?id={session}")
    await page.get_by_text("npm test").first.wait_for()


async def _diff(page: Page, whole: Whole) -> None:
    path = "workspace/src/theme.css"
    entry = (await whole.call("GET", f"/v1/history?limit=1&path={path}"))["entries"][0]["id"]
    origin = page.url.partition("/history")[0]
    await page.goto(f"{origin}/history/diff?old={entry - 1}&new={entry}&file={path}")
    await page.get_by_text("#14181a").first.wait_for()


async def _file(page: Page, whole: Whole) -> None:
    await page.locator(".cm-content").get_by_text("Hello from").wait_for()


async def _shell(page: Page, whole: Whole) -> None:
    screen = page.locator(".screen:not([hidden]) .xterm-rows")
    await screen.get_by_text("$").first.wait_for()
    await page.locator(".screen:not([hidden]) textarea").focus()
    await page.keyboard.type("clear; ls -1 && cat README.md\n")
    await screen.get_by_text("starts it.").first.wait_for()


async def _preview(page: Page, whole: Whole) -> None:
    await page.frame_locator("iframe").get_by_role("heading", name="Hello from the computer").wait_for()


PAGES: dict[str, tuple[str, Draw]] = {
    "sessions": ("/sessions", _talk),
    "approval": ("/sessions", _approval),
    "history": ("/history", _heading),
    "diff": ("/history", _diff),
    "files": ("/files?path=src/App.tsx", _file),
    "terminal": ("/terminal?new=1", _shell),
    "preview": ("/preview?port=8000", _preview),
    "network": ("/network", _heading),
    "connect": ("/connect", _heading),
    "settings": ("/settings", _heading),
}


async def _page(browser: Browser, whole: Whole, size: str, theme: Literal["light", "dark"], images: Path) -> Page:
    """One that is signed in; what it shows to who is outside is drawn on the way."""
    page = await browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/sign-in")
    await page.get_by_role("heading").first.wait_for()
    await page.screenshot(path=images / f"sign-in-{size}-{theme}.png")
    async with page.expect_response("**/v1/sign-in/link"):
        await page.goto(await sign_in_link(whole))
    await page.get_by_role("navigation", name="Pages").wait_for()
    return page


async def _serve_app(whole: Whole) -> None:
    """Something to preview, started as the owner would."""
    whole.file("shop").mkdir()
    whole.file("shop/index.html").write_text(APP)
    session = await whole.open("builtin", title="Run the shop")
    async with whole.watching(session) as watch:
        await whole.prompt(
            session, 'CALL run {"command": "cd shop && python3 -m http.server 8000", "background": true}'
        )
        await watch.answer("once")
        await watch.until("turn.ended")
    await whole.call("PATCH", f"/v1/sessions/{session}", archived=True)


async def _quiet(whole: Whole) -> None:
    """Answer whatever waits, so that no picture but its own shows it."""
    for asked in await whole.call("GET", "/v1/approvals"):
        await whole.call("POST", f"/v1/approvals/{asked['id']}", answer="reject")
    for question in (await whole.call("GET", "/v1/egress"))["pending"]:
        await whole.call("POST", f"/v1/egress/questions/{question['id']}", answer="never")


async def _draw_all(browser: Browser, whole: Whole, names: list[str], images: Path) -> None:
    for size in SIZES:
        for theme in THEMES:
            page = await _page(browser, whole, size, theme, images)
            for name in names:
                path, ready = PAGES[name]
                await page.goto(f"http://localhost:{whole.stead.gateway_port}{path}")
                await page.get_by_text("Live", exact=True).wait_for(state="attached")
                await ready(page, whole)
                await page.wait_for_load_state("networkidle")
                await page.screenshot(path=images / f"{name}-{size}-{theme}.png")
            await page.evaluate(CLOSE_TERMINALS)
            await page.context.close()


async def draw(names: list[str], images: Path = IMAGES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with lived_in(Path(folder)) as whole, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            if "preview" in names:
                await _serve_app(whole)
            if "approval" in names:
                await _draw_all(browser, whole, ["approval"], images)
            await _quiet(whole)
            await _draw_all(browser, whole, [name for name in names if name != "approval"], images)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(draw(sys.argv[1:] or list(PAGES)))
