"""Chromium inside a computer, controlled over a pipe: it opens no port for that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from freehold.browser.devtools import DevTools, Json
from freehold.browser.page import HEIGHT, NO_SITE, WIDTH, BrowserPage
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, PROXY_URL
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError

PROFILE = f"{AGENT_HOME}/profile"
MAX_NOTES = 20
CLOSE_TIMEOUT = 5.0
# Chromium reads commands from descriptor 3 and answers on 4.
_START = f'rm -f {PROFILE}/Singleton*; exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null'
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # Chromium's own sandbox needs namespaces, which the computer refuses. The computer is the wall.
    "--no-sandbox",
    f"--user-data-dir={PROFILE}",
    f"--window-size={WIDTH},{HEIGHT}",
    # Everything goes through egress, also what it would connect to directly: its own loopback.
    f"--proxy-server={PROXY_URL}",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    # It connects to nothing that no page asks for.
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--component-updater=url-source=http://127.0.0.1:1/",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-features=AutofillServerCommunication,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PreconnectToSearch,Translate",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--disable-gpu",
    "--disable-breakpad",
    "--disk-cache-size=52428800",
    "--hide-scrollbars",
    "--mute-audio",
    "--password-store=basic",
    "about:blank",  # else it begins with a page of its own, and connects for it
)
_ENVIRONMENT = {"DBUS_SESSION_BUS_ADDRESS": "disabled:", "DBUS_SYSTEM_BUS_ADDRESS": "disabled:"}


class Chromium:
    """One running browser with one page. Windows that a page opens are closed again, and noted."""

    def __init__(self, process: Process) -> None:
        self.tools = DevTools(process, self._on_event)
        self.page: BrowserPage
        self.allowed_site = NO_SITE
        """The origin that the owner has allowed last. Its page may be looked at."""
        self._notes: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None

    @property
    def has_ended(self) -> bool:
        return self._running is None or self._running.done()

    def pop_notes(self) -> list[str]:
        """What happened by itself since the last time, in words."""
        notes, self._notes = self._notes, []
        return notes

    async def wait_ended(self) -> None:
        assert self._running is not None
        await asyncio.wait([self._running])

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Chromium"]:
        self._running = asyncio.ensure_future(self.tools.run())
        try:
            await self._prepare()
            yield self
            await self._close()
        finally:
            for task in (self._running, *self._tasks):
                task.cancel()
            await asyncio.gather(self._running, *self._tasks, return_exceptions=True)

    async def _close(self) -> None:
        """In order, so that a profile that is kept has everything. One that does not end in time is killed."""
        with suppress(FreeholdError, TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.tools.call("Browser.close")
                await self.wait_ended()

    async def _prepare(self) -> None:
        made = await self.tools.call("Target.createTarget", {"url": "about:blank"})
        target = str(made.get("targetId"))
        attached = await self.tools.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self.page = BrowserPage(self.tools, target, str(attached.get("sessionId")))
        await self.page.prepare()
        await self.tools.call("Browser.setDownloadBehavior", {"behavior": "deny"})
        # From now on, and those that are there: the window that it begins with is closed as well.
        await self.tools.call("Target.setDiscoverTargets", {"discover": True})
        self._notes.clear()

    def _on_event(self, method: str, params: Json, session: str | None) -> None:
        match method:
            case "Target.targetCreated":
                info = params.get("targetInfo")
                if isinstance(info, dict) and info.get("type") == "page":
                    self._close_other(str(info.get("targetId")), str(info.get("url")))
            case "Page.javascriptDialogOpening":
                self._note(f"The page showed a dialog, which was dismissed: {str(params.get('message'))[:500]}")
                self._later("Page.handleJavaScriptDialog", {"accept": False}, session)
            case _:
                pass

    def _close_other(self, target: str, url: str) -> None:
        if target != self.page.target:
            self._note(f"The page opened a window, which was closed: {url[:500]}")
            self._later("Target.closeTarget", {"targetId": target}, None)

    def _note(self, words: str) -> None:
        if len(self._notes) < MAX_NOTES:
            self._notes.append(words)

    def _later(self, method: str, params: dict[str, Any], session: str | None) -> None:
        async def call() -> None:
            with suppress(FreeholdError):
                await self.tools.call(method, params, session=session)

        if len(self._tasks) < MAX_NOTES:
            task = asyncio.ensure_future(call())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def start_chromium(computer: Computer, program: str) -> AsyncIterator[Chromium]:
    """Chromium runs in `computer` during this block. Raises `browser.not-started`."""
    command = ["/bin/sh", "-c", _START, program, *_FLAGS]
    process = await computer.spawn(command, cwd=AGENT_HOME, env=_ENVIRONMENT)
    async with process:
        words = bytearray()
        draining = asyncio.ensure_future(_drain(process, words))
        try:
            async with Chromium(process).opened() as chromium:
                yield chromium
        except FreeholdError as error:
            if error.code != "browser.ended":
                raise
            last = bytes(words).decode(errors="replace").strip().splitlines()
            raise FreeholdError(
                "browser.not-started", f"{program} has ended: {last[-1][:300] if last else 'without a word'}"
            ) from error
        finally:
            process.kill()
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)


async def _drain(process: Process, words: bytearray) -> None:
    """So that Chromium never waits to write. The last words are kept."""
    with suppress(FreeholdError):
        while data := await process.stderr.read():
            words += data
            del words[:-4096]
