"""All isolates of this computer: zygotes by language and group, contexts by name, executions in their turn."""

from __future__ import annotations

import os
import time

from freehold.guest.isolates.context import IsolateContext
from freehold.guest.isolates.execution import Execution
from freehold.guest.isolates.module_store import ModuleStore
from freehold.guest.isolates.program import LANGUAGES
from freehold.guest.isolates.zygote import Zygote
from freehold.guest.kernel import deque
from freehold.guest.loop import log_error
from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from freehold.guest.isolates.isolate import Isolate
    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

MAX_RUNNING = 128
"""Executions that run at once; the others wait for their turn. Each is a process."""
MAX_CONTEXTS = 256
MAX_ZYGOTES = 12
"""Interpreters that wait for work: one for each language, owner or agents, and set of packages."""
MAX_SESSION_ZYGOTES = 8
"""So many of them are for agents at most: whatever packages they ask for, the owner's code runs."""
IDLE_AFTER = 300.0
"""Seconds after which a zygote without work is ended, unless a request says otherwise."""
TICK, SLOW_TICK = 0.05, 1.0
SESSIONS = "isolates of sessions"
"""The domain of isolates that agents start. It is inside that of all agents, so the kill switch ends them."""


class Isolates:
    def __init__(self, children: ChildProcesses) -> None:
        self._children = children
        self.loop = children.loop
        self._zygotes: dict[tuple[str, str, tuple[str, ...]], Zygote] = {}
        self._contexts: dict[str, IsolateContext] = {}
        self.modules = ModuleStore()
        self._waiting: deque[Execution] = deque()
        self._running: set[Execution] = set()
        self._idle_after = IDLE_AFTER
        self._next_tick = 0.0

    def execute(self, channel: GuestChannel, message: dict[str, Any]) -> Execution:
        if message.get("idle_after") is not None:
            self._idle_after = max(0.0, float(message["idle_after"]))
        return Execution(self, channel, message)

    def create(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        if len(self._contexts) >= MAX_CONTEXTS:
            raise OperationError("computer.busy", f"There are {MAX_CONTEXTS} contexts, which is the limit; delete some")
        identity = os.urandom(8).hex()
        context = self._contexts[identity] = IsolateContext(self, identity, message)
        self._tick_within(SLOW_TICK)
        channel.finish({"ok": context.describe()})

    def get(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        channel.finish({"ok": self.find_context(message["context"]).describe()})

    def list(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        channel.finish({"ok": [context.describe() for context in self._contexts.values()]})

    def interrupt(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        context = self.find_context(message["context"])
        if context.execution is not None:
            context.execution.stop(None)
        channel.finish({"ok": context.describe()})

    def reset(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        context = self.find_context(message["context"])
        if context.execution is not None:
            raise OperationError("computer.busy", f"The context {context.identity} is busy; cancel its execution first")
        context.reset()
        channel.finish({"ok": context.describe()})

    def delete(self, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._drop(self.find_context(message["context"]))
        channel.finish({"ok": True})

    def find_context(self, identity: object) -> IsolateContext:
        context = self._contexts.get(identity) if isinstance(identity, str) else None
        if context is None:
            raise OperationError("computer.no-context", f"There is no context {identity!r}")
        return context

    def take(self, message: dict[str, Any], limits: bytes = b"") -> Isolate:
        """An unused isolate for this language. Starts its zygote if there is none. `limits` as for `Zygote.take`."""
        language = message["language"]
        if language not in LANGUAGES:
            raise OperationError(
                "computer.bad-request", f"There are isolates for {', '.join(LANGUAGES)}, not {language!r}"
            )
        if language == "typescript":
            language = "javascript"
        packages = tuple(sorted(set(map(str, message.get("packages") or ()))))
        key = language, SESSIONS if message.get("apart") else "", packages
        zygote = self._zygotes.get(key)
        if zygote is None or not zygote.alive:
            self._zygotes.pop(key, None)
            self._make_room(key[1])
            zygote = self._zygotes[key] = Zygote(self._children, *key)
        return zygote.take(limits)

    def _make_room(self, group: str) -> None:
        """For another zygote: the one that was idle for longest ends."""
        for key in [key for key, zygote in self._zygotes.items() if not zygote.alive]:
            del self._zygotes[key]
        candidates = [key for key in self._zygotes if group and key[1] == group]
        if len(candidates) < MAX_SESSION_ZYGOTES:
            if len(self._zygotes) < MAX_ZYGOTES:
                return
            candidates = list(self._zygotes)
        idle = [key for key in candidates if self._zygotes[key].is_idle]
        if not idle:
            raise OperationError(
                "computer.busy",
                f"{len(candidates)} interpreters with different packages are in use, which is the limit",
            )
        oldest = min(idle, key=lambda key: self._zygotes[key].used_at)
        self._zygotes.pop(oldest).end()

    def queue(self, execution: Execution) -> None:
        self._waiting.append(execution)
        self._start_waiting()
        if self._waiting and self._waiting[-1] is execution:
            execution.wait()

    def unqueue(self, execution: Execution) -> None:
        if execution in self._waiting:
            self._waiting.remove(execution)

    def finished(self, execution: Execution) -> None:
        self._running.discard(execution)
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            execution = self._waiting.popleft()
            self._running.add(execution)
            try:
                execution.start()
            except (OperationError, OSError) as error:
                self._running.discard(execution)
                execution.refuse(error)
            self._tick_within(TICK)

    def _tick_within(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        if not self._next_tick or at < self._next_tick:
            self._next_tick = at
            self.loop.call_later(seconds, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        if not self._next_tick or now < self._next_tick - 0.001:
            return  # an earlier tick was set meanwhile
        self._next_tick = 0.0
        for execution in list(self._running):
            execution.check(now)
        for context in list(self._contexts.values()):
            if not context.check(now):
                self._drop(context)
        for key, zygote in list(self._zygotes.items()):
            if not zygote.alive or (zygote.is_idle and now - zygote.used_at > self._idle_after):
                zygote.end()
                del self._zygotes[key]
        if self._running:
            self._tick_within(TICK)
        elif self._contexts or self._zygotes:
            self._tick_within(SLOW_TICK)

    def _drop(self, context: IsolateContext) -> None:
        del self._contexts[context.identity]
        try:
            context.end()
        except OSError as error:
            log_error(error)
