"""The spans of one session's turns and tool calls. Without tracing they cost next to nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from freehold.agents.sessions.tool_call import ToolCall
from freehold.observe.agent_spans import agent_span, begin_tool_span, prompt_key, turn_key
from freehold.observe.tracing import OpenSpan, drop_parent, keep_parent


@contextmanager
def trace_turn(session: str, turn: int, agent: str, model: str | None) -> Iterator[None]:
    """A span around one turn. It is the parent of the turn's model requests, tool calls and calls to the keeper."""
    with agent_span(agent, session, turn, model):
        keep_parent(turn_key(session))
        try:
            yield
        finally:
            drop_parent(turn_key(session))
            drop_parent(prompt_key(session, turn))


class ToolSpans:
    """A span for each tool call of the running turn, from its first update to its last."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._open: dict[str, OpenSpan] = {}
        self._ended: set[str] = set()

    def follow(self, tool: ToolCall) -> None:
        """Call it after each update of the tool call."""
        if tool.id in self._ended:
            return
        if tool.id not in self._open:
            self._open[tool.id] = begin_tool_span(tool.kind, tool.id, self._session)
        if tool.status in ("completed", "failed"):
            self._open.pop(tool.id).end("tool.failed" if tool.status == "failed" else None)
            self._ended.add(tool.id)

    def end_turn(self) -> None:
        """Tool calls that have not ended were cancelled with the turn."""
        for seen in self._open.values():
            seen.end("turn.ended")
        self._open.clear()
        self._ended.clear()
