"""Routines that begin when another routine or a session has ended, or the owner has sent a message on a channel."""

from typing import Any

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.records import Routine
from freehold.routines.run_store import RunStore
from freehold.timeline import TimelineEvent

MAX_CHAIN = 10
"""Runs that began each after the other. A circle of routines ends there."""
ENDED = ("routine.run_done", "routine.run_failed")
MESSAGE = "channels.message_received"


class TimelineTrigger:
    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    async def see(self, event: TimelineEvent) -> None:
        """Idempotent: the number of the event is the cause of the run."""
        if event.kind in ENDED:
            await run_blocking(self._see_run, event)
        elif event.kind == "turn.ended":
            await run_blocking(self._see_turn, event)
        elif event.kind == MESSAGE:
            await run_blocking(self._see_message, event)

    def _see_run(self, event: TimelineEvent) -> None:
        wanted = f"routine:{event.data.get('routine')}"
        found = [one for one in self._runs.routines.list_triggered("after") if one.spec.after == wanted]
        if not found:
            return
        try:
            run = self._runs.get(str(event.data.get("run")))
        except FreeholdError:
            return  # it was removed meanwhile
        chain = int(run.data.get("chain", 0)) + 1
        if chain >= MAX_CHAIN:
            return
        told = {"routine": run.routine, "run": run.id, "state": run.state, "result": run.result, "chain": chain}
        for routine in found:
            self._trigger(routine, event, told)

    def _see_turn(self, event: TimelineEvent) -> None:
        session = str(event.data.get("session"))
        of_any = not self._runs.is_of_routine(session)
        for routine in self._runs.routines.list_triggered("after"):
            if routine.spec.after == f"session:{session}" or (of_any and routine.spec.after == "session"):
                self._trigger(routine, event, {"session": session, "turn": event.data.get("turn")})

    def _see_message(self, event: TimelineEvent) -> None:
        """Channels record messages of the paired owner only. One that begins with / is a command to the channel."""
        channel, text = str(event.data.get("channel")), str(event.data.get("text", ""))
        for routine in self._runs.routines.list_triggered("message"):
            if routine.spec.message in ("*", channel) and not text.startswith("/"):
                self._trigger(routine, event, {"channel": channel, "text": text})

    def _trigger(self, routine: Routine, event: TimelineEvent, told: dict[str, Any]) -> None:
        try:
            self._runs.trigger(routine.name, f"timeline:{event.seq}", told)
        except FreeholdError as error:
            # Paused or removed meanwhile, or triggered too often: that is recorded, and nothing is lost by it.
            self._runs.note_refusal(routine.name, error)
