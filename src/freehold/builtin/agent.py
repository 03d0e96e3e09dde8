"""The agent's side of ACP: what a client can ask of it."""

import asyncio
import contextlib
import importlib
import threading
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from freehold.builtin.blocks import Word, read_blocks, text_of
from freehold.builtin.connecting import NO_MODEL, find_model
from freehold.builtin.jobs import Job
from freehold.builtin.session import Session, fork_session, list_sessions, load_session, new_session
from freehold.builtin.step import Mode, shorten
from freehold.builtin.wire import Client, Json, Refusal, connect_stdio
from freehold.builtin.work import Work

PROTOCOL = 1
VERSION = "1.0"
MAX_OUTPUT = 30_000
OWN_COMMAND = 600.0
COMMANDS = [{"name": "compact", "description": "Sum up the conversation so far to make room"}]


class Program:
    """Holds the sessions of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sessions: dict[str, Session] = {}
        self.requests: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "authenticate": self._nothing,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
        }
        self.notices: dict[str, Callable[[Json], None]] = {"session/cancel": self._cancel}

    async def close(self) -> None:
        for session in self._sessions.values():
            await _end_jobs(session)

    async def _initialize(self, _params: Json) -> Json:
        # The model's libraries take a second to load: they do that while the client makes up its mind.
        if find_model() is not None:
            threading.Thread(target=_warm_up, daemon=True).start()
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "freehold-builtin", "title": "Freehold's own agent", "version": VERSION},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {"resume": {}, "fork": {}, "list": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _nothing(self, _params: Json) -> Json:
        return {}

    async def _new(self, params: Json) -> Json:
        return await self._opened(new_session(params["cwd"], params.get("mcpServers") or []))

    async def _load(self, params: Json) -> Json:
        session = load_session(params["sessionId"], params["cwd"], params.get("mcpServers") or [])
        replay = await _heavy("freehold.builtin.replay")
        for update in replay.replayed(session):
            await self._client.update(session.id, update)
        return await self._opened(session)

    async def _resume(self, params: Json) -> Json:
        return await self._opened(load_session(params["sessionId"], params["cwd"], params.get("mcpServers") or []))

    async def _fork(self, params: Json) -> Json:
        return await self._opened(fork_session(params["sessionId"], params["cwd"], params.get("mcpServers") or []))

    async def _opened(self, session: Session) -> Json:
        before = self._sessions.get(session.id)
        if before is not None:
            await _end_jobs(before)
        self._sessions[session.id] = session
        await self._client.update(
            session.id, {"sessionUpdate": "available_commands_update", "availableCommands": COMMANDS}
        )
        return {"sessionId": session.id, **session.options()}

    async def _list(self, _params: Json) -> Json:
        return {"sessions": await asyncio.to_thread(list_sessions)}

    async def _close(self, params: Json) -> Json:
        session = self._known(params)
        self._cancel(params)
        await _end_jobs(session)
        del self._sessions[session.id]
        return {}

    async def _set_mode(self, params: Json) -> Json:
        session = self._known(params)
        if params["modeId"] not in get_args(Mode):
            raise Refusal(f"There is no mode {params['modeId']!r}; there are: {', '.join(get_args(Mode))}", -32602)
        session.mode = params["modeId"]
        await self._client.update(session.id, {"sessionUpdate": "current_mode_update", "currentModeId": session.mode})
        return {}

    def _cancel(self, params: Json) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.turn is not None:
            session.turn.cancel()

    async def _prompt(self, params: Json) -> Json:
        session = self._known(params)
        if session.turn is not None:
            raise Refusal("This session is at work on another prompt")
        words = read_blocks(params["prompt"])
        session.turn = asyncio.ensure_future(self._answer(session, words))
        try:
            return await session.turn
        except asyncio.CancelledError:
            if session.turn.cancelled() and not _leaving():
                return {"stopReason": "cancelled"}
            session.turn.cancel()
            await asyncio.gather(session.turn, return_exceptions=True)
            raise
        finally:
            session.turn = None

    async def _answer(self, session: Session, words: list[Word]) -> Json:
        text = text_of(words).strip()
        work = Work(session, self._client)
        if text.startswith("!"):
            return await self._own_command(work, text[1:].strip())
        pointed = find_model()
        if pointed is None:
            await _say(work, NO_MODEL)
            return {"stopReason": "end_turn"}
        turn = await _heavy("freehold.builtin.turn")
        if text == "/compact":
            left = await turn.compact_now(work, pointed)
            await _say(work, f"Done: about {left} tokens are left.")
            return {"stopReason": "end_turn"}
        if session.title is None and text:
            session.title = text.splitlines()[0][:80]
            await work.tell({"sessionUpdate": "session_info_update", "title": session.title})
        answer: Json = await turn.run_turn(work, pointed, words)
        return answer

    async def _own_command(self, work: Work, command: str) -> Json:
        """What the owner types is not asked about: it is theirs to run."""
        async with work.step(uuid.uuid4().hex, command, "execute", {"command": command}) as step:
            job = await Job.start(command, work.session.cwd)
            try:
                ended = await job.wait(OWN_COMMAND, step.show_text)
            finally:
                if job.exit_code is None:
                    await job.end()
            output = shorten(job.output.rstrip("\n"), MAX_OUTPUT)
            await step.end(output, failed=bool(job.exit_code))
        state = "" if job.exit_code == 0 else f"\n[exit code {job.exit_code}]"
        await _say(work, f"```\n{output}{state if ended else f'{state} [ended after {OWN_COMMAND:g} s]'}\n```")
        return {"stopReason": "end_turn"}

    def _known(self, params: Json) -> Session:
        name = params["sessionId"]
        if name not in self._sessions:
            raise Refusal(f"There is no session {name!r:.80}", -32002)
        return self._sessions[name]


async def _heavy(module: str) -> Any:
    """A module that needs the model's libraries. They have cycles, which two threads must not enter by two doors."""
    await asyncio.to_thread(importlib.import_module, "freehold.builtin.turn")
    return importlib.import_module(module)


def _warm_up() -> None:
    # A client that hangs up at once ends us in the middle of it; whoever needs the module imports it again.
    with contextlib.suppress(Exception):
        importlib.import_module("freehold.builtin.turn")


def _leaving() -> bool:
    """Whether it is the whole request that is being cancelled, and not only the turn within it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _say(work: Work, text: str) -> None:
    await work.tell({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


async def _end_jobs(session: Session) -> None:
    await asyncio.gather(*(job.end() for job in session.jobs.values()))
    session.jobs.clear()


async def serve() -> None:
    client = await connect_stdio()
    program = Program(client)
    try:
        await client.serve(program.requests, program.notices)
    finally:
        await program.close()
