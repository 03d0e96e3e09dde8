"""A whole Freehold, started as its owner starts it: `freehold up`."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Playwright

from freehold.home import Home, find_home

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",
]


@dataclass(frozen=True)
class Freehold:
    """One that runs. `link` signs in one browser."""

    home: Home
    url: str
    link: str
    keeper_url: str
    environment: dict[str, str]
    process: "subprocess.Popen[str]"

    def verb(self, *words: str) -> "subprocess.Popen[str]":
        """A verb of the command line, running."""
        return subprocess.Popen(
            [sys.executable, "-m", "freehold.cli.main", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def new_link(self) -> str:
        said, _ = self.verb("open", "--print").communicate(timeout=PATIENCE)
        return said.strip()

    def family(self) -> list[int]:
        """The keeper and everything below it."""
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in task.read_text().split()]
        return found


@contextmanager
def freehold_up(folder: Path, **environment: str) -> Iterator[Freehold]:
    """Until the block ends."""
    home = find_home(folder / "home")
    ports = _free_ports(4)
    names = ("GATEWAY_PORT", "KEEPER_PORT", "OBSERVE_METRICS_PORT", "SSH_PORT")
    settings = {
        **os.environ,
        "FREEHOLD_HOME": str(home.root),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}",
        **{f"FREEHOLD_{name}": str(port) for name, port in zip(names, ports, strict=True)},
        **environment,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold.cli.main", "up", "--json"],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        told = _until_ready(process)
        yield Freehold(home, told["url"], told["sign_in"] or "", told["keeper_url"], settings, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _until_ready(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    # Lines are read ahead, so that the pipe itself cannot be asked whether there is another: a clock ends the wait.
    late = threading.Timer(PATIENCE, process.terminate)
    late.start()
    try:
        for line in process.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["event"] in ("ready", "not-ready"):
                return told
    finally:
        late.cancel()
        late.join()
    raise AssertionError("freehold up did not get ready")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def launch(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)


def signed_in(browser: Browser, freehold: Freehold) -> BrowserContext:
    """A browser of its own that has come in by a link."""
    context = browser.new_context()
    page = context.new_page()
    with page.expect_response("**/v1/sign-in/link"):
        page.goto(freehold.new_link())
    page.close()
    return context
