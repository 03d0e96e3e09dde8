"""The kill switch in the gateway: ends all agents and whatever they started, closes connections, and reports what is so."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import asdict, dataclass

from freehold.agents.sessions.service import SessionService
from freehold.computer.library.process_list import EndedSessions
from freehold.egress.models import ActiveStop
from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.timeline import Json, Timeline

ENDED_EVENT = "agents.ended"
WAIT = 10.0
"""Seconds to wait until the runners of killed agents have ended."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StopReport:
    """What the kill switch did. `processes` is None, with the problem, when the computer could not be asked."""

    processes: EndedSessions | None
    connections: int
    problem: str = ""

    def describe(self) -> str:
        closed = f"{self.connections} network connection{'' if self.connections == 1 else 's'} closed."
        if self.processes is None:
            return (
                f"{closed} Processes of agents may still run: {self.problem}. The computer has no network until you lift "
                "the stop or the gateway restarts. To end everything: freehold down"
            )
        return f"{self.processes.describe()} {closed}"

    def as_json(self) -> dict[str, Json]:
        body: dict[str, Json] = {"summary": self.describe(), "connections": self.connections}
        if self.processes is None:
            return {**body, "problem": self.problem}
        known = asdict(self.processes)
        return {**body, "ended": known["ended"], "left": len(known["left"]), "kept": known["kept"]}


class KillSwitch:
    """`pull` is a callback of the model gateway, which already refuses requests then."""

    def __init__(self, access: ComputerAccess, sessions: SessionService, timeline: Timeline) -> None:
        self._access = access
        self._sessions = sessions
        self._timeline = timeline

    async def pull(self, stop: ActiveStop) -> None:
        self._access.stop_report = None
        with suppress(FreeholdError):
            self._access.egress.end_all_conversations()
        # First, and before the computer is asked anything: it may not answer.
        self._access.is_network_closed = True
        connections = self._cut_all()
        await self._sessions.stop_all("The owner stopped all agents" + (f": {stop.why}" if stop.why else ""))
        processes, problem = None, ""
        try:
            first = await self._access.computer.end_sessions()
            # An agent that was about to start may have started after that.
            await self._sessions.wait_ended(WAIT)
            second = await self._access.computer.end_sessions()
            processes = EndedSessions(first.ended + second.ended, second.left, second.kept, second.detached)
        except FreeholdError as error:
            log.warning("the processes of agents cannot be ended: %s", error)
            problem = error.message
        else:
            self._access.is_network_closed = False
        connections += self._cut_all()
        report = StopReport(processes, connections, problem)
        self._access.stop_report = report.describe()
        await asyncio.to_thread(self._timeline.append, ENDED_EVENT, report.as_json(), who=stop.who)

    def _cut_all(self) -> int:
        with suppress(FreeholdError):
            return self._access.egress.cut_all()
        return 0
