"""The browsers of sessions: each starts at its first use, in a computer of its own, and ends with its agent."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from freehold.browser.exception import MAX_BROWSERS
from freehold.browser.section import BrowserSection
from freehold.errors import FreeholdError
from freehold.on_demand import OnDemand

if TYPE_CHECKING:
    from freehold.browser.chromium import Chromium
    from freehold.computer import Computer


class BrowserHost(Protocol):
    """Where the computers of browsers come from."""

    def open_computer(self, session: str, name: str) -> "AbstractAsyncContextManager[Computer]":
        """A computer for the browser of one session. Its only way out is egress, as that session. It ends with the block."""
        ...

    async def forget(self, name: str) -> None:
        """Removes what was kept of the computers with this name. Idempotent."""
        ...


@dataclass
class SessionBrowser:
    """`turn`: its tools work one after the other."""

    program: "OnDemand[Chromium]"
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Browsers:
    """`use` gives a session its browser. No two sessions ever share a browser, a profile or a computer."""

    def __init__(self, section: BrowserSection, host: BrowserHost) -> None:
        self.section = section
        self._host = host
        self._browsers: dict[str, SessionBrowser] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def use(self, session: str) -> "AsyncIterator[Chromium]":
        """The browser of a session, one user at a time. Raises `browser.too-many` or the reason why it cannot start."""
        browser = self._find(session)
        async with browser.program.use() as chromium, browser.turn:
            yield chromium

    def has_open(self, session: str) -> bool:
        return session in self._browsers and self._browsers[session].program.is_wanted

    async def close(self, session: str) -> None:
        """Ends the browser of a session, and waits until it is gone. Idempotent."""
        if session in self._browsers:
            await self._browsers[session].program.close()

    def close_soon(self, session: str) -> None:
        """The same, without waiting for it."""
        if self.has_open(session):
            self._run_later(self.close(session))

    async def close_all(self) -> None:
        await asyncio.gather(*(self.close(session) for session in list(self._browsers)))

    def forget(self, session: str) -> None:
        """The session was deleted: its profile goes as well."""

        async def remove() -> None:
            await self.close(session)
            self._browsers.pop(session, None)
            await self._host.forget(name_computer(session))

        if self.section.enabled:
            self._run_later(remove())

    def _run_later(self, act: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(act)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _find(self, session: str) -> SessionBrowser:
        if self.has_open(session):
            return self._browsers[session]
        if sum(one.program.is_wanted for one in self._browsers.values()) >= MAX_BROWSERS:
            raise FreeholdError(
                "browser.too-many",
                f"{MAX_BROWSERS} browsers of other conversations are open",
                hint="One is closed when its agent ends or it is not used for a while; try again then",
            )
        self._browsers = {name: one for name, one in self._browsers.items() if not one.program.is_gone}
        if session not in self._browsers:
            program = OnDemand("browser", lambda: self._start(session), idle=self.section.idle)
            self._browsers[session] = SessionBrowser(program)
        return self._browsers[session]

    @asynccontextmanager
    async def _start(self, session: str) -> "AsyncIterator[Chromium]":
        from freehold.browser.chromium import start_chromium  # few sessions use a browser

        async with (
            self._host.open_computer(session, name_computer(session)) as computer,
            start_chromium(computer, self.section.program) as chromium,
        ):
            yield chromium


def name_computer(session: str) -> str:
    """The name of the computer, and of the profile, of a session. Sessions are named by others than this room."""
    return f"browser-{hashlib.sha256(session.encode()).hexdigest()[:16]}"
