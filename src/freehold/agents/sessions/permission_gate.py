"""Answers the permission requests of one agent, and ends an agent that changes a call after it was allowed."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from freehold.agents.acp.json_rpc import AgentError, Json, Later
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.call_input import CallInput, read_input
from freehold.agents.sessions.permission_request import (
    AskedCall,
    PermissionRequest,
    build_request,
    describe_paths,
    find_option,
)
from freehold.agents.sessions.real_paths import ResolvePaths
from freehold.agents.sessions.session_log import SessionLog
from freehold.agents.sessions.tool_call import MAX_ID, ToolCall
from freehold.agents.threads import run_blocking
from freehold.computer.contract.conventions import WORKSPACE

_CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}
_OWN_FIELDS = frozenset({"sessionId", "toolCall", "options"})


class PermissionGate:
    """`kill` ends the agent. `waiting` counts the requests that wait for the owner."""

    def __init__(
        self,
        session: str,
        log: SessionLog,
        approvals: Approvals,
        kill: Callable[[AgentError], None],
        resolve: ResolvePaths,
    ) -> None:
        self._session = session
        self._log = log
        self._approvals = approvals
        self._kill = kill
        self._resolve = resolve
        self._allowed: dict[str, CallInput] = {}
        """The input of each tool call that was allowed in this turn."""
        self._cancelled = False
        self.folder = WORKSPACE
        """Where the agent works: its relative paths begin there."""
        self.waiting = 0

    def begin_turn(self) -> None:
        self._allowed.clear()
        self._cancelled = False

    def cancel_turn(self) -> None:
        """Requests are answered with `cancelled` from now on."""
        self._cancelled = True

    def request(self, params: Json) -> Later:
        """Reads the tool call now, before any later update can change it."""
        self._log.transcript.finish_message()
        call = params.get("toolCall")
        tool = self._log.transcript.join_tool_call(call) if isinstance(call, dict) else None
        if tool is None:
            return self._cancel
        more = {name: value for name, value in params.items() if name not in _OWN_FIELDS and value is not None}
        tool.waiting += 1
        return partial(self._decide, tool, self._ask(tool, more, params.get("options")))

    def _ask(self, tool: ToolCall, more: Mapping[str, Any], options: object) -> AskedCall:
        return AskedCall(tool.id, dict(tool.whole), more, options, self.folder)

    def check_update(self, update: Json) -> None:
        """Ends the agent when the update changes the input of a call that was allowed."""
        name = update.get("toolCallId")
        allowed = self._allowed.get(name[:MAX_ID]) if isinstance(name, str) else None
        if allowed is None or update.get("rawInput") is None:
            return
        found = read_input(update["rawInput"], self.folder)
        if found.differs_from(allowed):
            self._kill(
                AgentError(
                    "approval.changed",
                    f"The agent was stopped: it was allowed {_describe(allowed)} and changed that to {_describe(found)}",
                )
            )

    async def _decide(self, tool: ToolCall, call: AskedCall) -> Json:
        """Waits for the owner. When the call changed in the meantime, the answer does not count: it is asked again."""
        self.waiting += 1
        try:
            request = await self._read(call)
            while True:
                if self._log.turn is None or self._cancelled:
                    return _CANCELLED
                reply = await self._approvals.ask(self._session, self._log.turn, request)
                if reply is None:
                    return _CANCELLED
                call = self._ask(tool, call.more, call.options)
                current = await self._read(call, asked_again=True)
                if reply.answer == "reject" or current.digest == request.digest:
                    break
                request = current
        finally:
            self.waiting -= 1
            tool.waiting -= 1
        option = find_option(call.options, "reject_once" if reply.answer == "reject" else "allow_once")
        if option is None:
            return _CANCELLED
        if reply.answer != "reject":
            self._allowed[tool.id] = call.input
        await self._log.publish_session()
        return {"outcome": {"outcome": "selected", "optionId": option}}

    async def _read(self, call: AskedCall, *, asked_again: bool = False) -> PermissionRequest:
        written, _ = await run_blocking(call.list_paths)
        real = await self._resolve([call.find_absolute(path) for path in written])
        named = await run_blocking(describe_paths, call, real)
        return await run_blocking(partial(build_request, call, named, asked_again=asked_again))

    async def _cancel(self) -> Json:
        return _CANCELLED


def _describe(given: CallInput) -> str:
    return repr((given.subject or ", ".join(given.paths) or "a call without a command")[:300])
