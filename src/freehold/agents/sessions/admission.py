"""Which agents may run: as many as the computer's memory holds, started a few at a time. The others wait in a queue."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.agent_memory import AgentMemory

MAX_RUNNING = 120
"""Agents that run at the same time, whatever the memory. Inside, each has a Landlock domain of its own; 128 are kept."""

MAX_IDLE = 8
"""Idle agents that keep running, for a quick answer to the next prompt. Together they hold at most `IDLE_SHARE`."""

IDLE_SHARE = 0.25
RESERVE_SHARE = 0.125
"""The share of the memory limit that no agent is admitted to: for the programs that agents run, and for the owner's."""

START_TIMEOUT = 3.0
"""Seconds after which an agent that still starts no longer holds back the next."""

WaitReason = Literal["memory", "count", "starts"]


class AdmittedAgent(Protocol):
    """What is admitted. `idle_since` is None while it works. `retire` asks it to end if it is idle."""

    idle_since: float | None

    def retire(self) -> None: ...


@dataclass(frozen=True)
class WaitingPlace:
    """A place in the queue, from 1. `message` says all of it in a sentence."""

    place: int
    of: int
    running: int
    reason: WaitReason
    message: str

    def as_json(self) -> Json:
        return dict(vars(self))


class AgentPlace:
    """The place of one session's agent: first in the queue, then among those that run."""

    def __init__(self, admission: "Admission", session: str, kind: str, agent: AdmittedAgent) -> None:
        self._admission = admission
        self.session = session
        self.kind = kind
        self.agent = agent
        self.pid: int | None = None
        """Its process inside, when it has one."""
        self.measured = 0
        self.starting_until: float | None = None
        self.retiring = False
        self.decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def leave(self) -> None:
        """Gives up waiting. Does nothing once it was admitted."""
        if not self.decided.done():
            self.decided.set_result(False)

    def finish_start(self) -> None:
        """The agent has started: the next may start. Idempotent."""
        if self.starting_until is not None:
            self.starting_until = None
            self._admission.let_in()

    def rest(self) -> None:
        """The agent is idle now."""
        self.starting_until = None
        self._admission.retire_surplus()
        self._admission.let_in()

    def must_yield(self) -> bool:
        """Whether its agent should end after this turn although more prompts wait: others wait for its memory."""
        return self._admission.is_short


class Admission:
    """`memory` is the computer's limit in bytes, `starts` how many agents may start at the same time.

    The queue is strictly in order: an agent that needs much memory is not overtaken by small ones for ever. The first
    agent is always admitted. `on_moved` is called when the queue has changed.
    """

    def __init__(self, memory: int, sizes: AgentMemory, *, starts: int, on_moved: Callable[[], None]) -> None:
        self._memory = memory
        self._sizes = sizes
        self._starts = starts
        self._on_moved = on_moved
        self._waiting: list[AgentPlace] = []
        self._running: dict[str, AgentPlace] = {}
        self._reason: WaitReason = "starts"
        self._other = 0
        """Memory of everything inside that is not an agent."""

    @asynccontextmanager
    async def admit(self, session: str, kind: str, agent: AdmittedAgent) -> AsyncIterator[AgentPlace]:
        """Queues the agent. Await `decided` of the place: False means that it left the queue."""
        place = AgentPlace(self, session, kind, agent)
        self._waiting.append(place)
        self.let_in()
        if not place.decided.done():
            self._on_moved()
        try:
            yield place
        finally:
            if self._running.get(session) is place:
                del self._running[session]
            else:
                self._waiting.remove(place)
                self._on_moved()
            self.let_in()

    def let_in(self) -> None:
        """Admits those at the head of the queue, as many as fit. Retires idle agents when that makes room."""
        before = len(self._waiting)
        while self._waiting:
            head = self._waiting[0]
            if head.decided.done():
                break  # it left, and removes itself in a moment
            reason = self._find_obstacle(head.kind)
            if reason is not None:
                self._reason = reason
                if reason != "starts":
                    self._retire_for(head.kind)
                break
            del self._waiting[0]
            self._running[head.session] = head
            head.starting_until = time.monotonic() + START_TIMEOUT
            asyncio.get_running_loop().call_later(START_TIMEOUT, head.finish_start)
            head.decided.set_result(True)
        if len(self._waiting) != before:
            self._on_moved()

    def would_wait(self, kind: str, arriving: int) -> bool:
        """Whether an agent that comes after `arriving` others cannot start at once."""
        return bool(self._waiting) or self._find_obstacle(kind, arriving) is not None

    @property
    def is_short(self) -> bool:
        """Whether somebody waits for what no idle agent can give."""
        blocked = bool(self._waiting) and self._reason != "starts"
        return blocked and not any(self._is_idle(place) for place in self._running.values())

    def describe_waiting(self) -> Mapping[str, WaitingPlace]:
        """The place of every session that waits."""
        running = sum(not self._is_idle(place) for place in self._running.values())
        count = len(self._waiting)
        return {
            one.session: WaitingPlace(number, count, running, self._reason, self._explain(number, count, running))
            for number, one in enumerate(self._waiting, 1)
        }

    def find_waiting(self, session: str) -> WaitingPlace | None:
        if not any(place.session == session for place in self._waiting):
            return None
        return self.describe_waiting().get(session)

    # Memory

    def list_processes(self) -> dict[int, AgentPlace]:
        """The agents that run, by their process inside."""
        return {place.pid: place for place in self._running.values() if place.pid is not None}

    def apply_measurement(self, measured: Mapping[int, int], other: int) -> None:
        """`measured`: the memory of each agent by its process; `other`: of everything else inside."""
        self._other = other
        kinds: dict[str, list[int]] = {}
        for pid, place in self.list_processes().items():
            place.measured = measured.get(pid, 0)
            kinds.setdefault(place.kind, []).append(place.measured)
        for kind, sizes in kinds.items():
            self._sizes.learn(kind, sizes)
        self.let_in()

    @property
    def _available(self) -> int:
        """For all agents together, in bytes."""
        return max(0, self._memory - round(self._memory * RESERVE_SHARE) - self._other)

    def _size_of(self, place: AgentPlace) -> int:
        return max(place.measured, self._sizes.expect(place.kind))

    def _missing(self, kind: str, arriving: int = 0) -> int:
        """Bytes that are missing for one more agent of this kind."""
        used = sum(map(self._size_of, self._running.values()))
        return used + self._sizes.expect(kind) * (arriving + 1) - self._available

    def _find_obstacle(self, kind: str, arriving: int = 0) -> WaitReason | None:
        if not self._running and not arriving:
            return None
        if len(self._running) + arriving >= MAX_RUNNING:
            return "count"
        if self._missing(kind, arriving) > 0:
            return "memory"
        starting = sum(place.starting_until is not None for place in self._running.values())
        return "starts" if starting + arriving >= self._starts else None

    # Idle agents

    def _is_idle(self, place: AgentPlace) -> bool:
        return place.agent.idle_since is not None

    def _list_idle(self) -> list[AgentPlace]:
        """Those that could be retired, the least recently used first."""
        idle = [place for place in self._running.values() if self._is_idle(place) and not place.retiring]
        return sorted(idle, key=lambda place: place.agent.idle_since or 0.0)

    def _retire_for(self, kind: str) -> None:
        leaving = [place for place in self._running.values() if place.retiring]
        bytes_missing = self._missing(kind) - sum(map(self._size_of, leaving))
        places_missing = len(self._running) - len(leaving) + 1 - MAX_RUNNING
        for place in self._list_idle():
            if bytes_missing <= 0 and places_missing <= 0:
                return
            bytes_missing -= self._size_of(place)
            places_missing -= 1
            self._retire(place)

    def retire_surplus(self) -> None:
        """Retires the idle agents that are too many, or too large together. The last one may stay."""
        idle = self._list_idle()
        size = sum(map(self._size_of, idle))
        while len(idle) > 1 and (len(idle) > MAX_IDLE or size > self._available * IDLE_SHARE):
            oldest = idle.pop(0)
            size -= self._size_of(oldest)
            self._retire(oldest)

    def _retire(self, place: AgentPlace) -> None:
        place.retiring = True
        place.agent.retire()

    # Words

    def _explain(self, number: int, count: int, running: int) -> str:
        place = f"Waiting: {_ordinal(number)} of {count}"
        agents = "1 agent is running" if running == 1 else f"{running} agents are running"
        match self._reason:
            case "starts":
                return f"{place}; agents start {self._starts} at a time"
            case "count":
                return f"{place}; {agents}, which is the most"
            case "memory":
                holds = f"which is what {_show_size(self._memory)} hold"
                if self._other > self._memory * RESERVE_SHARE:
                    holds += f" beside {_show_size(self._other)} of other programs"
                return f"{place}; {agents}, {holds}. `[computer.limits] memory` allows more"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _show_size(size: int) -> str:
    unit, name = (1024**3, "GiB") if size >= 1024**3 else (1024**2, "MiB")
    return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
