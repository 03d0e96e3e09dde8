"""Which header fields of an agent reach a provider: those that are known to choose nothing. Others are left out.

By a header field a gateway in front of a model can be sent to another host, a provider to another account, and a
response can lose its token counts. So there is a list of what the SDKs and the shipped agents send, as for the fields
of the body.
"""

import re

from freehold.egress.http1 import Field, HttpRequest

_KNOWN = frozenset(
    {
        "user-agent",
        "anthropic-version",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "openai-beta",
        "x-goog-api-client",
        "x-server-timeout",
        "x-app",
        "x-client-request-id",
        "x-request-id",
        "x-claude-code-session-id",
        "x-claude-code-agent-id",
        "x-claude-code-parent-agent-id",
        "originator",
        "session_id",
        "session-id",
        "conversation_id",
        "thread_id",
        "thread-id",
        "x-codex-beta-features",
        "x-codex-inference-call-id",
        "x-codex-installation-id",
        "x-codex-parent-thread-id",
        "x-codex-turn-metadata",
        "x-codex-turn-state",
        "x-codex-window-id",
        "x-opencode-client",
        "x-opencode-project",
        "x-opencode-request",
        "x-opencode-session",
        "x-session-affinity",
        "x-session-id",
    }
)
_SDK_PREFIX = "x-stainless-"
"""What the packages of OpenAI and Anthropic say about themselves."""
_READABLE = re.compile(r"(?:application/json|text/event-stream|\*/\*)", re.IGNORECASE)
"""The formats in which token counts can be read."""


def sent_fields(request: HttpRequest, *, is_checked: bool) -> list[Field]:
    """The fields to send on. `is_checked` says that the body is the JSON that was checked, whatever the agent calls it."""
    kept = [(name, value) for name, value in request.end_to_end() if _is_kept(name.lower(), value, is_checked)]
    return [*kept, ("Content-Type", "application/json")] if is_checked else kept


def _is_kept(name: str, value: str, is_checked: bool) -> bool:
    if name == "accept":
        return not is_checked or all(_READABLE.fullmatch(part.strip()) for part in value.split(","))
    if name == "content-type":
        return not is_checked
    return name in _KNOWN or name.startswith(_SDK_PREFIX)
