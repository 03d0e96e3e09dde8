"""Work that is a prompt to an agent, in a session. The session recognises the prompt by its key, so it is sent once."""

from contextlib import suppress

from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError
from freehold.routines.agent_turn import find_end, find_turn, is_at_work, list_questions, measure_cost
from freehold.routines.prompt_text import build_prompt
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_changes import RunEnd
from freehold.routines.run_store import RunStore

MAX_CHECKLIST = 64 * 1024
CHECKLIST = "Read the checklist {path} and look after what it names. Its text now:\n\n{text}"


class PromptWork:
    def __init__(self, sessions: SessionService, runs: RunStore) -> None:
        self._sessions = sessions
        self._runs = runs

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        text = await self._read_text(routine)
        if text is None:
            return RunEnd("done", "The checklist is empty", quiet=True)
        assert run.session is not None  # chosen when it was claimed
        await self._open_session(routine, run.session)
        prompt = {"text": build_prompt(routine.name, text, run.data), "files": [], "images": []}
        who = f"routine:{routine.name}"
        turn, _ = await self._sessions.prompt(run.session, prompt, run.prompt_key, "queue", who=who)
        await run_blocking(self._runs.note_turn, run.id, run.session, turn)
        return None

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        """What was not sent is sent: its key is only known to the session if it was stored there."""
        assert run.session is not None
        if run.turn is not None:
            return None
        turn = await find_turn(self._sessions, run.session, run.prompt_key)
        if turn is None:
            return await self.begin(routine, run)
        await run_blocking(self._runs.note_turn, run.id, run.session, turn)
        return None

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        if run.session is None or run.turn is None:
            return None
        found = await find_end(self._sessions, run.session, run.turn)
        if found is None:
            return None
        end, row = found
        if end.quiet and row is not None and row.turns == 1:
            await self._put_away(row)
        return end

    async def measure_cost(self, run: RoutineRun) -> float | None:
        if run.session is None or run.turn is None:
            return None
        return await measure_cost(self._sessions, run.session, run.turn)

    async def stop(self, run: RoutineRun, reason: str) -> None:
        """In a session that the owner uses as well, what the owner has begun or asked for goes on."""
        if run.session is None:
            return
        with suppress(FreeholdError):
            await self._sessions.drop_prompt(run.session, run.prompt_key)
            if await is_at_work(self._sessions, run.session, run.prompt_key):
                await self._sessions.end_agent(run.session, reason)
            for asked in await list_questions(self._sessions, run.session, run.prompt_key):
                await self._sessions.dependencies.approvals.withdraw_one(asked.id)

    async def _read_text(self, routine: Routine) -> str | None:
        """None for a checklist that is missing or has only headings: then no model is asked."""
        spec = routine.spec
        if spec.checklist is None:
            return spec.prompt
        path = f"{WORKSPACE}/{spec.checklist}"
        dependencies = self._sessions.dependencies
        await dependencies.wait_connected()
        try:
            text = await dependencies.computer().files.read_text(path, limit=MAX_CHECKLIST)
        except FreeholdError as error:
            if error.kind.name == "not-found":
                return None
            raise
        if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
            return None
        asked = CHECKLIST.format(path=path, text=text)
        return asked if spec.prompt is None else f"{spec.prompt}\n\n{asked}"

    async def _open_session(self, routine: Routine, session: str) -> None:
        """Idempotent. Raises `session.not-found` for one that the owner has named."""
        try:
            await self._sessions.get(session)
        except FreeholdError:
            if routine.spec.session not in ("new", "same"):
                raise
            spec, who = routine.spec, f"routine:{routine.name}"
            await self._sessions.open(spec.agent, f"Routine {routine.name}", spec.model, who=who, id=session)
        if routine.spec.session == "same" and routine.session != session:
            await run_blocking(self._runs.routines.keep_session, routine.name, session)

    async def _put_away(self, row: SessionRow) -> None:
        """A session in which nothing happened does not show up as something new."""
        with suppress(FreeholdError):
            await self._sessions.mark_seen(row.id, row.seq)
            await self._sessions.update(row.id, title=None, archived=True, who="freehold")
