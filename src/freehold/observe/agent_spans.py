"""Spans of agents, tools and models, named by OpenTelemetry's conventions for generative AI.

They carry names, numbers and token counts. No prompt, no answer, no command and no path is in them.
"""

from contextlib import AbstractContextManager

from freehold.observe.tracing import Attribute, OpenSpan, TraceSpan, begin_span, find_parent, span

_PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini"}
"""The names that the conventions give to these kinds. Any other provider has its own name."""


def prompt_key(session: str, turn: int) -> str:
    """Under which the request that sent a prompt is kept as a parent (`keep_parent`)."""
    return f"prompt {session} {turn}"


def turn_key(session: str) -> str:
    """Under which the running turn of a session is kept as a parent."""
    return f"turn {session}"


def agent_span(agent: str, session: str, turn: int, model: str | None) -> AbstractContextManager[TraceSpan]:
    """One turn. Its parent is the request that sent the prompt."""
    more: dict[str, Attribute] = {} if model is None else {"gen_ai.request.model": model}
    return span(
        f"invoke_agent {agent}",
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": session,
            "freehold.turn": turn,
            **more,
        },
        parent=find_parent(prompt_key(session, turn)),
    )


def begin_tool_span(kind: str, call: str, session: str) -> OpenSpan:
    """One tool call of an agent. The tool is named by its kind: an agent's title for it may contain a command."""
    return begin_span(
        f"execute_tool {kind}",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": kind,
            "gen_ai.tool.call.id": call,
            "gen_ai.conversation.id": session,
        },
        parent=find_parent(turn_key(session)),
    )


def model_span(operation: str, provider: str, kind: str, model: str, session: str) -> AbstractContextManager[TraceSpan]:
    """One request to a provider. Its parent is the running turn of the session."""
    return span(
        f"{operation} {model}",
        {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDERS.get(kind, provider),
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": session,
        },
        parent=find_parent(turn_key(session)),
        side="client",
    )


def set_usage(seen: TraceSpan, input_tokens: int, output_tokens: int, model: str | None = None) -> None:
    seen.set("gen_ai.usage.input_tokens", input_tokens)
    seen.set("gen_ai.usage.output_tokens", output_tokens)
    if model is not None:
        seen.set("gen_ai.response.model", model)
