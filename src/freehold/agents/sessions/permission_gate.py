"""Answers the permission requests of one agent, and ends an agent that changes a command after it was allowed."""

from collections.abc import Callable
from functools import partial

from freehold.agents.acp.json_rpc import AgentError, Json, Later
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.permission_request import PermissionRequest, request_for
from freehold.agents.sessions.session_log import SessionLog
from freehold.agents.sessions.tool_call import MAX_ID, ToolCall

_CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}


class PermissionGate:
    """`kill` ends the agent. `waiting` counts the requests that wait for the owner."""

    def __init__(self, session: str, log: SessionLog, approvals: Approvals, kill: Callable[[AgentError], None]) -> None:
        self._session = session
        self._log = log
        self._approvals = approvals
        self._kill = kill
        self._allowed: dict[str, str | None] = {}
        """The commands that were allowed in this turn, by tool call."""
        self._cancelled = False
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
        return partial(self._decide, tool, None if tool is None else request_for(tool), params.get("options"))

    def check_update(self, update: Json) -> None:
        """Ends the agent when the update changes a command that was allowed."""
        name = update.get("toolCallId")
        if not isinstance(name, str) or name[:MAX_ID] not in self._allowed:
            return
        name = name[:MAX_ID]
        allowed, tool = self._allowed[name], self._log.transcript.tool_calls.get(name)
        found = request_for(tool).details.get("command") if tool is not None else allowed
        if allowed is not None and found is not None and found != allowed:
            self._kill(
                AgentError(
                    "approval.changed",
                    f"The agent was stopped: it was allowed {allowed[:300]!r} and changed that to {str(found)[:300]!r}",
                )
            )

    async def _decide(self, tool: ToolCall | None, request: PermissionRequest | None, options: object) -> Json:
        """Waits for the owner. When the tool call changed in the meantime, the owner is asked again."""
        if tool is None or request is None or self._log.turn is None or self._cancelled:
            return _CANCELLED
        self.waiting += 1
        try:
            while True:
                reply = await self._approvals.ask(self._session, self._log.turn, request)
                if reply is None:
                    return _CANCELLED
                current = request_for(tool)
                if current.digest == request.digest:
                    break
                request = current
        finally:
            self.waiting -= 1
        option = _find_option(options, "reject_once" if reply.answer == "reject" else "allow_once")
        if option is None:
            return _CANCELLED
        if reply.answer != "reject":
            self._allowed[tool.id] = request.details.get("command")
        await self._log.publish_session()
        return {"outcome": {"outcome": "selected", "optionId": option}}


def _find_option(options: object, kind: str) -> str | None:
    """The agent's id for an answer. The agent never gets a lasting yes: Freehold keeps the permission rules."""
    for one in options if isinstance(options, list) else []:
        if isinstance(one, dict) and one.get("kind") == kind and isinstance(one.get("optionId"), str):
            return str(one["optionId"])
    return None
