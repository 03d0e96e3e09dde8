"""The first project under a real Freehold in a real browser: a change is seen without a reload, and so is its undo."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, WebSocket, expect, sync_playwright
from tests.e2e.house import PATIENCE, REPOSITORY, Freehold, freehold_up, launch, signed_in

from freehold.home import Home
from freehold.starter.kit import NAME, fetch_kit

pytestmark = pytest.mark.shared_processes

SECONDS = 30_000
CACHE = Home(root=REPOSITORY / ".cache" / "agents", run=REPOSITORY / ".cache" / "agents")
LIGHT = "rgb(251, 250, 247)"
DARK = "rgb(16, 16, 16)"


def link_kit(target: Path) -> None:
    """As fetched once for all tests: by hard links, there at once and of no size."""
    fetch_kit(CACHE)
    for name in (NAME, ".node"):
        shutil.copytree(CACHE.agents / name, target / name, symlinks=True, copy_function=os.link)


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freehold]:
    folder = tmp_path_factory.mktemp("up")
    home = folder / "home"
    (home / "agents").mkdir(parents=True)
    link_kit(home / "agents")
    settings = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    words = [sys.executable, "-m", "freehold.cli.main", "starter", "--if-new", "--home", str(home)]
    done = subprocess.run(words, env=settings, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "A first page is in" in done.stdout
    with freehold_up(folder) as running:
        yield running


@pytest.fixture(scope="module")
def context(freehold: Freehold) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield signed_in(browser, freehold)
        browser.close()


def verb(freehold: Freehold, *words: str) -> str:
    running = freehold.verb(*words)
    said, wrong = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, wrong
    return said


def paper(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_make_it_dark_and_back_again_without_a_reload(freehold: Freehold, context: BrowserContext) -> None:
    """Vite's own socket brings each change; what was clicked meanwhile is still counted."""
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    heard: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: heard.append(str(frame)))

    page.on("websocket", listen)
    opened = json.loads(verb(freehold, "preview", "5173", "--json"))
    page.goto(opened["address"])
    page.get_by_role("heading", name="This page is yours.").wait_for()
    assert page.url == f"{opened['origin']}/"
    page.get_by_role("button").click()
    assert paper(page) == LIGHT

    theme = freehold.home.workspace / "src" / "theme.css"
    theme.write_text(theme.read_text().replace("--paper: #fbfaf7", "--paper: #101010"))
    page.wait_for_function(f"getComputedStyle(document.body).backgroundColor === '{DARK}'")
    expect(page.get_by_role("button")).to_have_text("Clicked 1 time")
    verb(freehold, "undo")
    page.wait_for_function(f"getComputedStyle(document.body).backgroundColor === '{LIGHT}'")
    expect(page.get_by_role("button")).to_have_text("Clicked 1 time")
    updates = [frame for frame in heard if '"type":"update"' in frame and "/src/theme.css" in frame]
    assert len(updates) >= 2
    assert not any("full-reload" in frame for frame in heard)
    page.close()


def test_the_packages_are_neither_in_history_nor_writable(freehold: Freehold) -> None:
    """The workspace holds a link; what Vite makes of it lies in the computer's own /tmp."""
    kept = verb(freehold, "diff", "1", "--stat")
    assert "theme.css" in kept
    assert "react-dom" not in kept
    assert {path.name for path in freehold.home.workspace.iterdir()} == {
        "AGENTS.md",
        "index.html",
        "node_modules",
        "package.json",
        "src",
        "vite.config.js",
    }
    tried = freehold.verb("run", "touch", "/workspace/node_modules/mine")
    tried.communicate(timeout=PATIENCE)
    assert tried.returncode != 0


def test_the_verb_lists_what_listens_and_who(freehold: Freehold) -> None:
    (port,) = json.loads(verb(freehold, "preview", "--json"))
    assert port == {"port": 5173, "process": "node vite.js", "service": "web"}
    refused = freehold.verb("preview", "22")
    _, wrong = refused.communicate(timeout=PATIENCE)
    assert refused.returncode == 1
    assert "Port 22 is not between" in wrong


def test_a_service_that_is_killed_comes_back_and_the_page_with_it(freehold: Freehold, context: BrowserContext) -> None:
    """The page that says that nothing listens looks again by itself."""
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    verb(freehold, "run", "sh", "-c", "kill -9 $(pgrep -f '[v]ite.js')")
    page.goto(json.loads(verb(freehold, "preview", "5173", "--json"))["address"])
    page.get_by_role("heading", name="This page is yours.").wait_for()
    page.close()
