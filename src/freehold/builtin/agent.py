"""The agent's side of ACP: the requests that it answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

from freehold.builtin.blocks import PromptPart, join_text, read_blocks
from freehold.builtin.jobs import Job
from freehold.builtin.json_rpc import AcpClient, Json, RequestError, connect_stdio
from freehold.builtin.model_connection import NO_MODEL, read_model_settings
from freehold.builtin.replay import replay_updates
from freehold.builtin.session import BuiltinSession, fork_session, list_sessions, load_session, new_id, new_session
from freehold.builtin.tool_call import Mode, shorten
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.turn import compact_now, run_turn

PROTOCOL = 1
VERSION = "1.0"
MAX_OUTPUT = 30_000
OWNER_COMMAND_TIMEOUT = 600.0
COMMANDS = [{"name": "compact", "description": "Summarise the conversation so far to free space in the context"}]


class BuiltinAgent:
    """The sessions of one client."""

    def __init__(self, client: AcpClient) -> None:
        self._client = client
        self._sessions: dict[str, BuiltinSession] = {}
        self.requests: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "authenticate": self._accept,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
        }
        self.notifications: dict[str, Callable[[Json], None]] = {"session/cancel": self._cancel}

    async def close(self) -> None:
        for session in self._sessions.values():
            await _end_jobs(session)

    async def _initialize(self, _params: Json) -> Json:
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

    async def _accept(self, _params: Json) -> Json:
        return {}

    async def _new(self, params: Json) -> Json:
        return await self._open(new_session(params["cwd"], params.get("mcpServers") or []))

    async def _load(self, params: Json) -> Json:
        session = load_session(params["sessionId"], params["cwd"], params.get("mcpServers") or [])
        for update in replay_updates(session):
            await self._client.update(session.id, update)
        return await self._open(session)

    async def _resume(self, params: Json) -> Json:
        return await self._open(load_session(params["sessionId"], params["cwd"], params.get("mcpServers") or []))

    async def _fork(self, params: Json) -> Json:
        return await self._open(fork_session(params["sessionId"], params["cwd"], params.get("mcpServers") or []))

    async def _open(self, session: BuiltinSession) -> Json:
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
        session = self._find_session(params)
        self._cancel(params)
        await _end_jobs(session)
        del self._sessions[session.id]
        return {}

    async def _set_mode(self, params: Json) -> Json:
        session = self._find_session(params)
        if params["modeId"] not in get_args(Mode):
            raise RequestError(
                f"There is no mode {params['modeId']!r}. The modes are: {', '.join(get_args(Mode))}", -32602
            )
        session.mode = params["modeId"]
        if session.messages:
            session.save()
        await self._client.update(session.id, {"sessionUpdate": "current_mode_update", "currentModeId": session.mode})
        return {}

    def _cancel(self, params: Json) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.turn is not None:
            session.turn.cancel()

    async def _prompt(self, params: Json) -> Json:
        session = self._find_session(params)
        if session.turn is not None:
            raise RequestError("This session is working on another prompt")
        parts = read_blocks(params["prompt"])
        session.turn = asyncio.ensure_future(self._run_prompt(session, parts))
        try:
            return await session.turn
        except asyncio.CancelledError:
            if session.turn.cancelled() and not _is_request_cancelled():
                return {"stopReason": "cancelled"}
            session.turn.cancel()
            await asyncio.gather(session.turn, return_exceptions=True)
            raise
        finally:
            session.turn = None

    async def _run_prompt(self, session: BuiltinSession, parts: list[PromptPart]) -> Json:
        text = join_text(parts).strip()
        context = ToolContext(session, self._client)
        if text.startswith("!"):
            return await self._run_owner_command(context, text[1:].strip())
        settings = read_model_settings()
        if settings is None:
            await _send_message(context, NO_MODEL)
            return {"stopReason": "end_turn"}
        if text == "/compact":
            left = await compact_now(context, settings)
            await _send_message(context, f"Done. The conversation has about {left} tokens now.")
            return {"stopReason": "end_turn"}
        if session.title is None and text:
            session.title = text.splitlines()[0][:80]
            session.save()
            await context.send_update({"sessionUpdate": "session_info_update", "title": session.title})
        return await run_turn(context, settings, parts)

    async def _run_owner_command(self, context: ToolContext, command: str) -> Json:
        """A command that the owner typed. It runs without a permission request."""
        async with context.for_call(new_id()).start_call(command, "execute", {"command": command}) as tool_call:
            job = await Job.start(command, context.session.cwd)
            try:
                ended = await job.wait(OWNER_COMMAND_TIMEOUT, tool_call.show_text)
            finally:
                if job.exit_code is None:
                    await job.end()
            output = shorten(job.output.rstrip("\n"), MAX_OUTPUT)
            await tool_call.end(output, failed=bool(job.exit_code))
        state = "" if job.exit_code == 0 else f"\n[exit code {job.exit_code}]"
        await _send_message(
            context, f"```\n{output}{state if ended else f'{state} [ended after {OWNER_COMMAND_TIMEOUT:g} s]'}\n```"
        )
        return {"stopReason": "end_turn"}

    def _find_session(self, params: Json) -> BuiltinSession:
        name = params["sessionId"]
        if name not in self._sessions:
            raise RequestError(f"There is no session {name!r:.80}", -32002)
        return self._sessions[name]


def _is_request_cancelled() -> bool:
    """Whether the whole request is cancelled, and not only its turn."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _send_message(context: ToolContext, text: str) -> None:
    await context.send_update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


async def _end_jobs(session: BuiltinSession) -> None:
    await asyncio.gather(*(job.end() for job in session.jobs.values()))
    session.jobs.clear()


async def serve() -> None:
    client = await connect_stdio()
    program = BuiltinAgent(client)
    try:
        await client.serve(program.requests, program.notifications)
    finally:
        await program.close()
