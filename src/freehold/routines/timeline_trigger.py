"""Routines that begin when another routine or a session has ended, or the owner has sent a message on a channel."""

from typing import Any

from freehold.agents.sessions.answered_turns import find_first_key
from freehold.agents.sessions.approval_store import ApprovalStore
from freehold.agents.sessions.turn_store import TurnStore
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.records import KEY, Routine
from freehold.routines.run_store import RunStore
from freehold.routines.workflows.records import KEY as WORKFLOW_KEY
from freehold.timeline import TimelineEvent

MAX_CHAIN = 10
"""Runs that began each after the other. A circle of routines ends there."""
ENDED = ("routine.run_done", "routine.run_failed")
MESSAGE = "channels.message_received"


class TimelineTrigger:
    def __init__(self, runs: RunStore, turns: TurnStore, approvals: ApprovalStore) -> None:
        self._runs = runs
        self._turns = turns
        self._approvals = approvals

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
            error = FreeholdError("routine.too-many", f"{MAX_CHAIN} runs began each after the other")
            for routine in found:
                self._runs.note_refusal(routine.name, error)
            return
        told = {"routine": run.routine, "run": run.id, "state": run.state, "result": run.result, "chain": chain}
        for routine in found:
            self._trigger(routine, event, told)

    def _see_turn(self, event: TimelineEvent) -> None:
        session, turn = str(event.data.get("session")), event.data.get("turn")
        if not isinstance(turn, int) or self._is_unattended(session, turn):
            return
        of_any = not self._runs.is_of_routine(session)
        for routine in self._runs.routines.list_triggered("after"):
            if routine.spec.after == f"session:{session}" or (of_any and routine.spec.after == "session"):
                self._trigger(routine, event, {"session": session, "turn": turn})

    def _is_unattended(self, session: str, turn: int) -> bool:
        """Whether a routine or a workflow has begun it: a routine would begin itself again and again."""
        try:
            key = find_first_key(self._turns, self._approvals, session, turn)
        except FreeholdError:
            return True  # its session was deleted meanwhile
        return key.startswith((KEY, WORKFLOW_KEY))

    def _see_message(self, event: TimelineEvent) -> None:
        """Channels record messages of the paired owner only. One that begins with / is a command to the channel, a reply is
        for the session or the question that it answers, and one that came too late or too fast is not carried out."""
        if event.data.get("taken") is False or event.data.get("reply"):
            return
        channel, text = str(event.data.get("channel")), str(event.data.get("text", ""))
        for routine in self._runs.routines.list_triggered("message"):
            if routine.spec.message in ("*", channel) and not text.lstrip().startswith("/"):
                self._trigger(routine, event, {"channel": channel, "text": text})

    def _trigger(self, routine: Routine, event: TimelineEvent, told: dict[str, Any]) -> None:
        try:
            self._runs.trigger(routine.name, f"timeline:{event.seq}", told)
        except FreeholdError as error:
            # Paused or removed meanwhile, or triggered too often: that is recorded, and nothing is lost by it.
            self._runs.note_refusal(routine.name, error)
