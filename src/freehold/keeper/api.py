"""Where the keeper answers: the methods of its socket and the facts behind its page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.keeper.archive import Archive
from freehold.keeper.methods import Methods, NoParams
from freehold.keeper.processes import resident_bytes
from freehold.keeper.reading import Reading
from freehold.keeper.tending import tended

if TYPE_CHECKING:
    from freehold.identity.sessions import Sessions
    from freehold.keeper.computer_program import ComputerProgram
    from freehold.keeper.keeper import Keeper
    from freehold.keeper.logbook import Logbook
    from freehold.keeper.plan import Plan

LAST_EVENTS = 12


@dataclass(frozen=True)
class ProgramParams:
    program: str
    who: str = "owner"


@dataclass(frozen=True)
class LogParams:
    program: str | None = None


class Desk:
    def __init__(self, keeper: Keeper, plan: Plan, book: Logbook, sessions: Sessions) -> None:
        self.keeper = keeper
        self.plan = plan
        self.book = book
        self.sessions = sessions
        self.computer: ComputerProgram | None = None
        self.archive: Archive | None = None
        self.began = keeper.settings.now()
        self.methods = methods = Methods()
        methods.add_call("status", NoParams, self._status)
        methods.add_call("restart", ProgramParams, lambda params: self.restart(params.program, who=params.who))
        methods.add_call("stop", NoParams, self._stop)
        methods.add_call("computer", NoParams, self._computer)
        methods.add_stream("logs.follow", LogParams, lambda params: self.book.follow(params.program))

    async def status(self) -> dict[str, Any]:
        """Everything `freehold status` shows."""
        keeper, plan = self.keeper, self.plan
        events = await asyncio.to_thread(keeper.record.tail, LAST_EVENTS)
        return {
            "version": __version__,
            "home": str(keeper.home.root),
            "boot": keeper.boot_id,
            "ready": keeper.sealed_since is not None,
            "since": keeper.sealed_since,
            "missing": keeper.supervisor.missing(),
            "keeper": {"pid": os.getpid(), "since": self.began, "memory": resident_bytes(os.getpid())},
            "programs": [kept.status().as_json() for kept in keeper.supervisor.programs()],
            "ports": self._ports(),
            "url": plan.gateway_url,
            "keeper_url": plan.keeper_url,
            "manifest": {"path": str(keeper.home.manifest), "checksum": plan.checksum},
            "advice": [{"code": one.code, "message": one.message, "hint": one.hint} for one in plan.advice],
            **(self.computer.facts() if self.computer is not None else {"isolation": None, "usage": None}),
            "timeline_trouble": keeper.record.trouble,
            "events": [event.as_json() for event in events],
        }

    async def greeting(self) -> dict[str, Any]:
        """What `freehold up` prints, with a fresh sign-in link when there is no owner DID."""
        link = await asyncio.to_thread(self.sessions.create_link) if self.plan.owner is None else None
        return {
            "url": self.plan.gateway_url,
            "keeper_url": self.plan.keeper_url,
            "sign_in": f"{self.plan.gateway_url}/sign-in#{link}" if link is not None else None,
            "owner": self.plan.owner,
            "isolation": (self.computer.facts() if self.computer is not None else {}).get("isolation"),
            "home": str(self.keeper.home.root),
            "missing": self.keeper.supervisor.missing(),
            "advice": [{"code": one.code, "message": one.message, "hint": one.hint} for one in self.plan.advice],
        }

    async def restart(self, program: str, *, wait: bool = True, who: str = "owner") -> dict[str, Any]:
        """End a program in good order and start it again; answers when the new life has begun, or answers its probe."""
        kept = self.keeper.supervisor.find(program)
        if program == "gateway":
            await self._refuse_broken_manifest()
        self.keeper.record("program.restart_asked", {"program": program}, who=who)
        await kept.restart()
        if wait:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.keeper.settings.start_deadline):
                    await self.keeper.changes.until(lambda: kept.state != "starting")
        return kept.status().as_json()

    async def _refuse_broken_manifest(self) -> None:
        """A gateway reads the manifest anew: the one that runs is not given up for one that could not start."""
        try:
            await Reading(self.keeper.home).plan()
        except FreeholdError as error:
            if error.code == "manifest.invalid":
                raise

    @contextlib.asynccontextmanager
    async def serve_page(self, sockets: list[socket.socket]) -> AsyncIterator[None]:
        from freehold.keeper.page.server import serve_page

        async with serve_page(self, sockets):
            yield

    async def open_history(self, stack: contextlib.AsyncExitStack, tasks: asyncio.TaskGroup) -> None:
        """Opened and watching when this returns; the state found at start is taken while the boot goes on."""

        def after_undo() -> None:
            tasks.create_task(tended("what an undo asks for", self._after_undo))

        self.archive = archive = Archive(self.keeper.home, self.plan, self.keeper.record, after_undo)
        stack.push_async_callback(archive.close)
        await archive.open()
        archive.register(self.methods)
        first = tasks.create_task(tended("the first snapshot", archive.take_first))
        stack.callback(first.cancel)

    async def _after_undo(self) -> None:
        """Services whose files were changed under them start anew, when they asked for it."""
        for service in self.plan.services:
            if service.restart_on_undo:
                with contextlib.suppress(FreeholdError):
                    await self.restart(f"service-{service.name}", wait=False, who="keeper")

    async def _status(self, _: NoParams) -> dict[str, Any]:
        return await self.status()

    async def _stop(self, _: NoParams) -> dict[str, Any]:
        self.keeper.request_stop()
        return {"stopping": True, "pid": os.getpid()}

    async def _computer(self, _: NoParams) -> dict[str, Any]:
        return self.computer.facts() if self.computer is not None else {"isolation": None, "usage": None}

    def _ports(self) -> list[dict[str, Any]]:
        plan = self.plan
        return [
            {"name": "gateway", "host": plan.gateway_host, "port": plan.gateway_port},
            {"name": "keeper", "host": plan.keeper_host, "port": plan.keeper_port},
            {"name": "metrics", "host": plan.metrics_host, "port": plan.metrics_port},
            *([{"name": "ssh", "host": plan.ssh_host, "port": plan.ssh_port}] if plan.ssh_port is not None else []),
        ]
