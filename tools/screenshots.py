"""`python -m tools.screenshots [PAGE…]`: draws every page of the control center into docs/images, in both sizes and themes.

The pictures show the contents of `tests/support/example_freehold.py`. `contents.json` has the headings and buttons that
they show; `tests/e2e/test_pictures.py` compares these with the pages of today.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, ViewportSize
from tests.git.test_repository import COMMIT, make_repository, run_inside
from tests.support.browser import DESKTOP, PAGE_TIMEOUT, PHONE, run_browser
from tests.support.condition import until
from tests.support.example_freehold import BASKET, DARK, run_example_freehold
from tests.support.running_freehold import RunningFreehold

from tools.feature_scenes import add_routines, add_skills, draw_tools, draw_workflow, start_workflow, write_server

RUNS = "/v1/slots/orchestrator/runs"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZES: dict[str, ViewportSize] = {"desktop": DESKTOP, "phone": PHONE}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
APP = """<!doctype html><meta name=viewport content="width=device-width"><title>Shop</title>
<style>body{font:18px/1.5 system-ui;margin:0;display:grid;place-items:center;min-height:100vh;background:#14181a;color:#e8e6df}
main{text-align:center;padding:2rem}h1{font-size:2.5rem;margin:0}button{font:inherit;padding:.6rem 1.4rem;border:0;
border-radius:99px;background:#8fd0b5;color:#10211a}</style><main><h1>Hello from the computer</h1>
<p>A small shop, and it is dark now.</p><button>Look around</button></main>"""

PRICES = "export function price(cents: number): string {\n  return `${%s} €`;\n}\n"
CELLS = ["prices = {'tea': 12.50, 'cup': 8.47}\nlen(prices)", "round(sum(prices.values()), 2)"]

CONTENTS = IMAGES / "contents.json"
# Without what differs from one Freehold to the next, such as a number.
READ_CONTENTS = """() => [...new Set([...document.querySelectorAll('main :is(h1, h2, button)')]
  .filter((one) => one.checkVisibility())
  .map((one) => (one.getAttribute('aria-label') ?? one.textContent).trim())
  .filter((name) => name !== '' && !/\\d/.test(name)))]"""

Draw = Callable[[Page, RunningFreehold], Awaitable[None]]


async def _draw_heading(page: Page, freehold: RunningFreehold) -> None:
    await page.locator("main h1, main h2, main button").first.wait_for()


async def _draw_session(page: Page, freehold: RunningFreehold) -> None:
    rows = (await freehold.call("GET", "/v1/sessions"))["sessions"]
    session = next(row["id"] for row in rows if row["title"] == "A dark page")
    await page.goto(f"{page.url.partition('/sessions')[0]}/sessions?id={session}")
    await page.get_by_role("log").get_by_text("The page is dark now").wait_for()
    await page.get_by_role("log").get_by_text("for contrast").wait_for()


async def _draw_approval(page: Page, freehold: RunningFreehold) -> None:
    rows = (await freehold.call("GET", "/v1/sessions"))["sessions"]
    session = next(row["id"] for row in rows if row["title"] == "The price of a basket")
    await page.goto(f"{page.url.partition('/sessions')[0]}/sessions?id={session}")
    await page.get_by_text("npm test").first.wait_for()


async def _draw_diff(page: Page, freehold: RunningFreehold) -> None:
    path = "workspace/src/theme.css"
    entry = (await freehold.call("GET", f"/v1/history?limit=1&path={path}"))["entries"][0]["id"]
    origin = page.url.partition("/history")[0]
    await page.goto(f"{origin}/history/diff?old={entry - 1}&new={entry}&file={path}")
    await page.get_by_text("#14181a").first.wait_for()


async def _draw_file(page: Page, freehold: RunningFreehold) -> None:
    await page.locator(".cm-content").get_by_text("Hello from").wait_for()


async def _draw_terminal(page: Page, freehold: RunningFreehold) -> None:
    screen = page.locator(".terminal-screen:not([hidden]) .xterm-rows")
    await screen.get_by_text("$").first.wait_for()
    await page.locator(".terminal-screen:not([hidden]) textarea").focus()
    await page.keyboard.type("clear; ls -1 && cat README.md\n")
    await screen.get_by_text("starts it.").first.wait_for()


def _wait_for(selector: str) -> Draw:
    """For a page of a slot: something of its own is there, not only its heading."""

    async def draw(page: Page, freehold: RunningFreehold) -> None:
        await page.locator(selector).first.wait_for()

    return draw


async def _draw_git(page: Page, freehold: RunningFreehold) -> None:
    await page.get_by_role("region", name="Log").get_by_text("Show prices").first.wait_for()
    await page.get_by_role("button", name="prices.ts changed").click()
    await page.get_by_role("region", name="Changed lines").first.wait_for()


async def _draw_code(page: Page, freehold: RunningFreehold) -> None:
    notebook = json.dumps({"cells": CELLS, "settings": {}})
    await page.evaluate("(text) => localStorage.setItem('freehold:notebook', text)", notebook)
    await page.reload()
    await page.get_by_role("button", name="Run all").click()
    await page.get_by_text("20.97", exact=True).wait_for()


async def _draw_preview(page: Page, freehold: RunningFreehold) -> None:
    await page.frame_locator("iframe").get_by_role("heading", name="Hello from the computer").wait_for()


PAGES: dict[str, tuple[str, Draw]] = {
    "sessions": ("/sessions", _draw_session),
    "approval": ("/sessions", _draw_approval),
    "history": ("/history", _draw_heading),
    "diff": ("/history", _draw_diff),
    "files": ("/files?path=src/App.tsx", _draw_file),
    "terminal": ("/terminal?new=1", _draw_terminal),
    "preview": ("/preview?port=8000", _draw_preview),
    "network": ("/network", _draw_heading),
    "connect": ("/connect", _draw_heading),
    "settings": ("/settings", _draw_heading),
    "beads": ("/beads", _wait_for(".beads-card")),
    "events": ("/events", _wait_for("main li")),
    "pods": ("/pods", _wait_for("main li")),
    "memory": ("/memory", _wait_for("main li")),
    "runs": ("/runs", _wait_for(".runs-list li")),
    "code": ("/code", _draw_code),
    "git": ("/git?folder=till", _draw_git),
    "skills": ("/skills", _wait_for("main li h3, main li h2")),
    "tools": ("/mcp", draw_tools),
    "routines": ("/routines", _wait_for("main article")),
    "channels": ("/channels", _draw_heading),
    "workflows": ("/workflows", draw_workflow),
}


async def _open_page(
    browser: Browser, freehold: RunningFreehold, size: str, theme: Literal["light", "dark"], images: Path
) -> Page:
    """A signed-in page. The sign-in page is drawn on the way."""
    page = await browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page.set_default_timeout(PAGE_TIMEOUT)
    await page.goto(f"{freehold.url}/sign-in")
    await page.get_by_role("heading").first.wait_for()
    await page.screenshot(path=images / f"sign-in-{size}-{theme}.png")
    async with page.expect_response("**/v1/sign-in/link"):
        await page.goto(freehold.harness.make_sign_in_link())
    await page.get_by_role("navigation", name="Pages").wait_for()
    return page


async def _serve_app(freehold: RunningFreehold) -> None:
    """Start a server to preview, by a session."""
    freehold.file("shop").mkdir()
    freehold.file("shop/index.html").write_text(APP)
    session = await freehold.open("builtin", title="Run the shop")
    async with freehold.watch(session) as watch:
        await freehold.prompt(
            session, 'CALL run {"command": "cd shop && python3 -m http.server 8000", "background": true}'
        )
        await watch.answer("once")
        await watch.until("turn.ended")
    await freehold.call("PATCH", f"/v1/sessions/{session}", archived=True)


async def _make_repository(freehold: RunningFreehold) -> None:
    """With one file that is staged and one that is not."""
    folder = await make_repository(freehold, "till", "README.md")
    (folder / "prices.ts").write_text(PRICES % "(cents / 100).toFixed(1)")
    await run_inside(freehold, f"cd till && git add -A && {COMMIT} 'Show prices'")
    (folder / "README.md").write_text("# Till\n")
    await run_inside(freehold, "cd till && git add -A")
    (folder / "prices.ts").write_text(PRICES % "(cents / 100).toFixed(2)")


async def _answer_requests(freehold: RunningFreehold) -> None:
    """Answer every request, so that only the picture of a request shows one."""
    for asked in await freehold.call("GET", "/v1/approvals"):
        await freehold.call("POST", f"/v1/approvals/{asked['id']}", answer="reject")
    for question in (await freehold.call("GET", "/v1/egress"))["pending"]:
        await freehold.call("POST", f"/v1/egress/requests/{question['id']}", answer="never")


async def _run_agents(freehold: RunningFreehold) -> None:
    """Two runs: one has changed a file, the other was refused everything."""

    async def run(title: str, prompt: str, answer: str, **more: object) -> None:
        begun = await freehold.http.post(RUNS, json={"title": title, "prompt": prompt, **more})
        assert begun.status_code == 201, begun.text

        async def is_over() -> bool:
            found = await freehold.call("GET", f"{RUNS}/{begun.json()['id']}")
            for asked in await freehold.call("GET", "/v1/approvals"):
                if asked["session"] == found["session"]:
                    await freehold.call("POST", f"/v1/approvals/{asked['id']}", answer=answer)
            return found["finished"] is not None

        await until(is_over)

    await run("Test the price of a basket", BASKET, "reject", folder=".", permissions=["ask", "memory", "beads"])
    await run("Make the page dark", DARK, "once")


async def _draw_all(browser: Browser, freehold: RunningFreehold, names: list[str], images: Path) -> None:
    contents: dict[str, list[str]] = {}
    for size in SIZES:
        for theme in THEMES:
            page = await _open_page(browser, freehold, size, theme, images)
            for name in names:
                await _show(page, freehold, name)
                await page.screenshot(path=images / f"{name}-{size}-{theme}.png")
                if size == "desktop":
                    contents[name] = await page.evaluate(READ_CONTENTS)
            await _end_terminals(freehold)
            await page.context.close()
    file = images / CONTENTS.name
    stored = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(stored | contents, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


async def _show(page: Page, freehold: RunningFreehold, name: str) -> None:
    path, ready = PAGES[name]
    await page.goto(f"{freehold.url}{path}")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await ready(page, freehold)
    await page.wait_for_load_state("networkidle")


async def _end_terminals(freehold: RunningFreehold) -> None:
    for terminal in await freehold.call("GET", "/v1/terminals"):
        await freehold.http.delete(f"/v1/terminals/{terminal['id']}")


async def _do_nothing(freehold: RunningFreehold) -> None:
    """What these pages show is there."""


# What is done before these pages are shown, in this order. "" is for all pages that are not named here.
PREPARED: dict[str, Callable[[RunningFreehold], Awaitable[None]]] = {
    "approval": _do_nothing,
    "": _answer_requests,
    "preview": _serve_app,
    "runs": _run_agents,
    "git": _make_repository,
    "skills": add_skills,
    "tools": write_server,
    "routines": add_routines,
    "workflows": start_workflow,
}


async def _prepare(freehold: RunningFreehold, names: list[str]) -> AsyncIterator[list[str]]:
    """The pages in groups, each when the Freehold has what they show and nothing that only a later one shows."""
    for key, prepare in PREPARED.items():
        group = [name for name in names if (name if name in PREPARED else "") == key]
        if group or key == "":
            await prepare(freehold)
        if group:
            yield group


async def read_contents() -> dict[str, list[str]]:
    """The headings and buttons of every page that has pictures, as they are now."""
    with tempfile.TemporaryDirectory() as folder:
        async with run_example_freehold(Path(folder)) as freehold, run_browser() as browser:
            page = await _open_page(browser, freehold, "desktop", "light", Path(folder))
            found: dict[str, list[str]] = {}
            async for group in _prepare(freehold, list(PAGES)):
                for name in group:
                    await _show(page, freehold, name)
                    found[name] = await page.evaluate(READ_CONTENTS)
            return found


async def draw(names: list[str], images: Path = IMAGES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with run_example_freehold(Path(folder)) as freehold, run_browser() as browser:
            async for group in _prepare(freehold, names):
                await _draw_all(browser, freehold, group, images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"Some of: {', '.join(PAGES)}. Without: all.")
    pages = parser.parse_args().pages
    if unknown := [page for page in pages if page not in PAGES]:
        parser.error(f"There is no page {unknown[0]}. The pages are: {', '.join(PAGES)}")
    asyncio.run(draw(pages or list(PAGES)))


if __name__ == "__main__":
    main()
