"""What does Lighthouse say about the control center: the page to sign in, and the workbench with a conversation?

Lighthouse in a real Chromium with an empty cache, once as a phone (its slow network and processor) and once as a desktop.
Each score is the median of the rounds. `tools/install-lighthouse` installs it on the first run.
"""

import contextlib
import json
import os
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.boot import Home
from bench.harness import Figure, main
from bench.web import AGENT, FLAGS, MANIFEST, Looker

AIM = 95
ATTEMPTS = 3
"""Lighthouse sometimes misses the begin of a navigation and asks to be run again."""
CATEGORIES = {"performance": "performance", "accessibility": "accessibility", "best-practices": "best practices"}
REPOSITORY = Path(__file__).parents[1]


def install() -> tuple[str, str]:
    """The program, and the folder of the Node that runs it."""
    words = (["tools/install-lighthouse"], ["tools/node-path"])
    program, node = (
        subprocess.run(word, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
        for word in words
    )
    return program, node


def choose_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def judge(browser_type: Any, looker: Looker, path: str, form: str) -> dict[str, float]:
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(subprocess.CalledProcessError):
            return visit(browser_type, looker, path, form)
    return visit(browser_type, looker, path, form)


def visit(browser_type: Any, looker: Looker, path: str, form: str) -> dict[str, float]:
    """The scores of one visit with a new profile. It is signed in by its storage, so that nothing is in its cache."""
    program, node = install()
    port = choose_port()
    with tempfile.TemporaryDirectory() as profile:
        context = browser_type.launch_persistent_context(
            profile, executable_path="/usr/bin/chromium", args=[*FLAGS, f"--remote-debugging-port={port}"]
        )
        try:
            if path != "/sign-in":
                key = looker.page.evaluate("localStorage.getItem('freehold.sign-in')")
                page = context.new_page()
                page.goto(f"{looker.url}/v1/health")
                page.evaluate("(key) => localStorage.setItem('freehold.sign-in', key)", key)
                page.close()
            words = [program, looker.url + path, f"--port={port}", "--disable-storage-reset", "--quiet"]
            words += ["--output=json", f"--only-categories={','.join(CATEGORIES)}"]
            words += ["--preset=desktop"] if form == "desktop" else []
            environment = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}"}
            said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
        finally:
            context.close()
    return {name: found["score"] * 100 for name, found in json.loads(said)["categories"].items()}


def measure(quick: bool) -> Iterable[Figure]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        home = Home(Path(folder))
        home.home.workspace.mkdir(parents=True, mode=0o700)
        home.home.manifest.write_text(MANIFEST)
        (home.home.workspace / "clock.py").write_text(AGENT)
        stack.enter_context(home.up())
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        stack.callback(browser.close)
        looker = Looker(home, browser)
        session = looker.post("/v1/sessions", title="A conversation")["id"]
        page = looker.go(f"/sessions?id={session}")
        looker.prompt(session, "messages", 20, 0)
        page.get_by_role("log").get_by_text("tokens unknown").wait_for()

        pages = {"sign-in": "/sign-in", "list of sessions": "/sessions", "workbench": f"/sessions?id={session}"}
        for name, path in pages.items():
            for form in ("phone", "desktop"):
                scores = [judge(playwright.chromium, looker, path, form) for _ in range(1 if quick else 3)]
                for category, title in CATEGORIES.items():
                    score = statistics.median(one[category] for one in scores)
                    yield Figure(f"{name}, {form}: {title}", score, "", "", None, f"≥ {AIM}", score >= AIM)


if __name__ == "__main__":
    main("What does Lighthouse say about the control center?", measure)
