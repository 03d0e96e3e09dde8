"""The agent that an editor talks to: each of its sessions is one of a Freehold."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from freehold import __version__
from freehold.agents.acp.json_rpc import AgentError, Json, JsonRpcPeer, Later, Pipe
from freehold.agents.visible_text import make_visible
from freehold.client import Freehold
from freehold.client._async.sessions import AsyncSession
from freehold.client.session_models import SessionUpdate
from freehold.computer.contract.conventions import WORKSPACE
from freehold.editors.paths import EditorPaths
from freehold.editors.permission import read_answer, request_of
from freehold.editors.updates import UpdateTranslator, commands_update, text_update
from freehold.errors import FreeholdError

PROTOCOL = 1
_STOPS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
MAX_LOG = 10


@dataclass
class EditorSession:
    session: AsyncSession
    translator: UpdateTranslator
    asking: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    """Permission requests that the editor has not answered, by approval."""


class EditorAgent:
    """`run` it until the editor hangs up. `agent`: with whom new sessions are opened."""

    def __init__(self, home: Freehold, pipe: Pipe, paths: EditorPaths, agent: str | None) -> None:
        self._home = home
        self._paths = paths
        self._agent = agent
        self._sessions: dict[str, EditorSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._peer = JsonRpcPeer(
            pipe, on_notification=self._notified, on_pause=self._paused, on_request=self._requested
        )
        self._requests: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "authenticate": self._accept,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
            "session/close": self._close,
        }

    async def run(self) -> None:
        try:
            await self._peer.run()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _paused(self) -> None:
        """Everything is sent as it comes."""

    def _requested(self, method: str, params: Json) -> Later:
        answer = self._requests.get(method)
        return partial(_refuse, method) if answer is None else partial(answer, params)

    def _notified(self, method: str, params: Json) -> None:
        open_session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and open_session is not None:
            self._spawn(self._cancel(open_session))

    def _spawn(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Requests of the editor

    async def _initialize(self, _params: Json) -> Json:
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "freehold", "title": "Freehold", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"embeddedContext": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _accept(self, _params: Json) -> Json:
        return {}

    async def _new(self, _params: Json) -> Json:
        session = await self._home.sessions.open(self._agent)
        return {"sessionId": session.id, **await self._open(session)}

    async def _load(self, params: Json) -> Json:
        session = await self._home.sessions.get(str(params.get("sessionId")))
        opened = await self._open(session)
        translator = UpdateTranslator(self._paths)
        async for event in session.events():
            for update in translator.replay(event):
                await self._send(session.id, update)
        return opened

    async def _resume(self, params: Json) -> Json:
        return await self._open(await self._home.sessions.get(str(params.get("sessionId"))))

    async def _open(self, session: AsyncSession) -> Json:
        self._sessions[session.id] = EditorSession(session, UpdateTranslator(self._paths))
        offer = await session.offer()
        await self._send(session.id, commands_update([one.model_dump() for one in offer.commands]))
        if offer.options is None or not offer.options.modes or offer.options.mode is None:
            return {}
        modes = [one.model_dump() for one in offer.options.modes]
        return {"modes": {"currentModeId": offer.options.mode, "availableModes": modes}}

    async def _list(self, params: Json) -> Json:
        page = await self._home.sessions.list(cursor=str(params.get("cursor") or ""))
        folder = self._paths.to_editor(WORKSPACE)
        rows = [
            {"sessionId": one.id, "cwd": folder, "title": one.title, "updatedAt": one.updated} for one in page.sessions
        ]
        return {"sessions": rows, **({} if page.next is None else {"nextCursor": page.next})}

    async def _set_mode(self, params: Json) -> Json:
        await self._find(params).session.set_option("mode", str(params.get("modeId")))
        return {}

    async def _close(self, params: Json) -> Json:
        """The session stays in Freehold; the editor only no longer follows it."""
        self._sessions.pop(self._find(params).session.id)
        return {}

    async def _cancel(self, opened: EditorSession) -> None:
        with suppress(FreeholdError):
            await opened.session.cancel()

    async def _prompt(self, params: Json) -> Json:
        opened = self._find(params)
        text, files = self._read_blocks(params.get("prompt"))
        own = {"/undo": self._undo, "/redo": self._redo, "/log": self._log}.get(text.strip())
        if own is not None:
            await self._send(opened.session.id, text_update("agent_message_chunk", make_visible(await own())))
            return {"stopReason": "end_turn"}
        ended: SessionUpdate | None = None
        try:
            async for update in opened.session.prompt(text, files=files):
                await self._pass_on(opened, update)
                ended = update
        finally:
            for task in opened.asking.values():
                task.cancel()
            opened.asking.clear()
        return _stop_reason(ended)

    # Updates to the editor

    async def _pass_on(self, opened: EditorSession, update: SessionUpdate) -> None:
        if update.kind == "approval":
            self._ask(opened, update.data)
        for one in opened.translator.translate(update):
            await self._send(opened.session.id, one)

    def _ask(self, opened: EditorSession, approval: Json) -> None:
        name = str(approval.get("id"))
        waiting = opened.asking.pop(name, None)
        if waiting is not None:
            waiting.cancel()  # answered elsewhere, or asked again
        if approval.get("state") == "pending":
            opened.asking[name] = self._spawn(self._request_permission(opened, approval))

    async def _request_permission(self, opened: EditorSession, approval: Json) -> None:
        asked = {"sessionId": opened.session.id, **request_of(approval)}
        try:
            answer = await self._peer.request("session/request_permission", asked)
        except AgentError:
            return  # it waits for the owner in the control center
        chosen = read_answer(approval, answer.get("outcome"))
        if chosen is not None:
            with suppress(FreeholdError):  # answered elsewhere meanwhile
                await opened.session.answer(str(approval["id"]), chosen.answer, chosen.note)

    async def _send(self, session: str, update: Json) -> None:
        await self._peer.notify("session/update", {"sessionId": session, "update": update})

    # The parts

    def _find(self, params: Json) -> EditorSession:
        name = str(params.get("sessionId"))
        if name not in self._sessions:
            raise FreeholdError("session.not-found", f"There is no open session {name[:80]!a}")
        return self._sessions[name]

    def _read_blocks(self, blocks: object) -> tuple[str, list[str]]:
        """The text of a prompt, and the files of the workspace that it names."""
        texts: list[str] = []
        files: list[str] = []
        for block in blocks if isinstance(blocks, list) else ():
            if block.get("type") == "text":
                texts.append(str(block.get("text") or ""))
            elif block.get("type") == "resource_link":
                self._add_address(str(block.get("uri")), texts, files)
            elif block.get("type") == "resource" and isinstance(block.get("resource"), dict):
                resource = block["resource"]
                name = self._paths.read_address(str(resource.get("uri"))) or resource.get("uri")
                texts.append(f"\n{name}:\n```\n{resource.get('text') or ''}\n```\n")
        return "".join(texts), files

    def _add_address(self, address: str, texts: list[str], files: list[str]) -> None:
        path = self._paths.read_address(address)
        texts.append(path or address)
        if path is not None and path != WORKSPACE:
            files.append(path)

    async def _undo(self) -> str:
        return (await self._home.history.undo()).summary

    async def _redo(self) -> str:
        return (await self._home.history.redo()).summary

    async def _log(self) -> str:
        entries = await self._home.history.log(limit=MAX_LOG)
        rows = [f"- {one.id}: {one.why or one.kind} (+{one.added} ~{one.changed} -{one.removed})" for one in entries]
        return "\n".join(rows) or "Nothing has changed yet."


async def _refuse(method: str) -> Json:
    raise FreeholdError("agent.not-offered", f"Freehold does not support {method[:60]}")


def _stop_reason(ended: SessionUpdate | None) -> Json:
    data = {} if ended is None else ended.data
    error = data.get("error")
    if isinstance(error, dict) and data.get("stop_reason") != "cancelled":
        raise FreeholdError("agent.refused", f"{error.get('message')}. {error.get('hint') or ''}".strip())
    reason = data.get("stop_reason")
    return {"stopReason": reason if reason in _STOPS else "end_turn"}
