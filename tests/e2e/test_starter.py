"""The first project in a real browser: a change and its undo are visible without a reload."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, WebSocket, expect
from tests.support.agents import AGENT_CACHE, link_agents
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, prepare_harness, run_harness

from freehold.home import Home
from freehold.starter.packages import NAME, install_packages

pytestmark = pytest.mark.shared_processes

LIGHT = "rgb(251, 250, 247)"
DARK = "rgb(16, 16, 16)"


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFreehold]:
    """With the first project in its workspace."""
    install_packages(Home(root=AGENT_CACHE.parent, run=AGENT_CACHE.parent))
    harness = prepare_harness(tmp_path_factory.mktemp("freehold"), FreeholdOptions())
    link_agents(harness.home.agents, (NAME,))
    assert "Created a first project in" in harness.run("starter", "--if-new", check=True).stdout
    with run_harness(harness) as freehold:
        yield freehold


def run(freehold: RunningFreehold, *words: str) -> str:
    done = freehold.harness.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_make_it_dark_and_back_again_without_a_reload(freehold: RunningFreehold, context: BrowserContext) -> None:
    """Vite sends each change over its socket, and the state of the page stays."""
    page = context.new_page()
    frames: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(str(frame)))

    page.on("websocket", listen)
    opened = json.loads(run(freehold, "preview", "5173", "--json"))
    page.goto(opened["address"])
    page.get_by_role("heading", name="This page is yours.").wait_for()
    assert page.url == f"{opened['origin']}/"
    page.get_by_role("button").click()
    assert background(page) == LIGHT

    theme = freehold.home.workspace / "src" / "theme.css"
    theme.write_text(theme.read_text().replace("--paper: #fbfaf7", "--paper: #101010"))
    page.wait_for_function(f"getComputedStyle(document.body).backgroundColor === '{DARK}'")
    expect(page.get_by_role("button")).to_have_text("Clicked 1 time")
    run(freehold, "undo")
    page.wait_for_function(f"getComputedStyle(document.body).backgroundColor === '{LIGHT}'")
    expect(page.get_by_role("button")).to_have_text("Clicked 1 time")
    updates = [frame for frame in frames if '"type":"update"' in frame and "/src/theme.css" in frame]
    assert len(updates) >= 2
    assert not any("full-reload" in frame for frame in frames)
    page.close()


def test_the_packages_are_neither_in_history_nor_writable(freehold: RunningFreehold) -> None:
    """The workspace has a link to them; Vite writes its own files to the /tmp of the computer."""
    stat = run(freehold, "diff", "1", "--stat")
    assert "theme.css" in stat
    assert "react-dom" not in stat
    assert {path.name for path in freehold.home.workspace.iterdir()} == {
        "AGENTS.md",
        "index.html",
        "node_modules",
        "package.json",
        "src",
        "vite.config.js",
    }
    assert freehold.harness.run("run", "touch", "/workspace/node_modules/mine").returncode != 0


def test_the_preview_command_lists_ports_and_their_programs(freehold: RunningFreehold) -> None:
    (port,) = json.loads(run(freehold, "preview", "--json"))
    assert port == {"port": 5173, "process": "node vite.js", "service": "web"}
    refused = freehold.harness.run("preview", "22")
    assert refused.returncode == 1
    assert "Port 22 is not between" in refused.stderr


def test_a_service_that_is_killed_comes_back_and_the_page_with_it(
    freehold: RunningFreehold, context: BrowserContext
) -> None:
    """The page that says that nothing listens reloads by itself."""
    page = context.new_page()
    run(freehold, "run", "sh", "-c", "kill -9 $(pgrep -f '[v]ite.js')")
    page.goto(json.loads(run(freehold, "preview", "5173", "--json"))["address"])
    page.get_by_role("heading", name="This page is yours.").wait_for()
    page.close()
