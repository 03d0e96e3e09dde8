"""Makes a conversation smaller before it exceeds the model's context: first old results are left out, then the begin is summarised."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

COMPACTION_THRESHOLD = 0.8
"""The part of the context window above which the conversation is compacted."""

RECENT_MESSAGES = 6
"""Messages at the end that are never changed."""

MAX_KEPT_RESULT = 400
"""Characters. Longer results of old tool calls are left out."""

LEFT_OUT = "[left out to save space; call the tool again if you need it]"
LAST_REQUEST = "\n\nMy last request:\n\n"
_CHARACTERS_A_TOKEN = 3.5

Summarise = Callable[[str], Awaitable[str]]


def count_tokens(messages: Sequence[ModelMessage]) -> int:
    """About how many tokens: what the model counted, and an estimate for the messages after that."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            counted = message.usage.input_tokens + message.usage.output_tokens
            return max(counted, _estimate(messages)) if at == 0 else counted + _estimate(messages[at + 1 :])
    return _estimate(messages)


def _estimate(messages: Sequence[ModelMessage]) -> int:
    return int(len(ModelMessagesTypeAdapter.dump_json(list(messages))) / _CHARACTERS_A_TOKEN) if messages else 0


async def compact(messages: list[ModelMessage], window: int, summarise: Summarise) -> list[ModelMessage]:
    """The same conversation with fewer tokens. Tool calls and their results stay together."""
    shorter = [*(_without_results(message) for message in messages[:-RECENT_MESSAGES]), *messages[-RECENT_MESSAGES:]]
    if _estimate(shorter) < window * COMPACTION_THRESHOLD / 2:
        return shorter
    cut = _find_cut(shorter)
    if cut == 0:
        return shorter
    summary = await summarise(_as_text(shorter[:cut], int(window * COMPACTION_THRESHOLD * _CHARACTERS_A_TOKEN / 2)))
    prompt = next((_prompt(message) for message in reversed(shorter[:cut]) if _prompt(message)), "")
    text = f"A summary of the conversation so far, because it became too long:\n\n{summary}{LAST_REQUEST}{prompt.rpartition(LAST_REQUEST)[2]}"
    return [ModelRequest(parts=[UserPromptPart(text)]), *shorter[cut:]]


def _without_results(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        ToolReturnPart(part.tool_name, LEFT_OUT, part.tool_call_id)
        if isinstance(part, ToolReturnPart) and len(part.model_response_str()) > MAX_KEPT_RESULT
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _find_cut(messages: Sequence[ModelMessage]) -> int:
    """The first message that stays. It is an answer of the model, so that no result loses its call."""
    for at in range(max(1, len(messages) - RECENT_MESSAGES), len(messages)):
        if isinstance(messages[at], ModelResponse):
            return at
    return 0


def _prompt(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ""
    contents = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    words = [[content] if isinstance(content, str) else content for content in contents]
    return "\n".join(word for some in words for word in some if isinstance(word, str))


def _as_text(messages: Sequence[ModelMessage], max_length: int) -> str:
    lines: list[str] = []
    for message in messages:
        for part in message.parts:
            match part:
                case UserPromptPart():
                    lines.append(f"User: {part.content}")
                case TextPart():
                    lines.append(f"Agent: {part.content}")
                case ToolCallPart():
                    lines.append(f"Agent called {part.tool_name}: {part.args_as_json_str()[:1000]}")
                case ToolReturnPart():
                    lines.append(f"Result: {part.model_response_str()[:1000]}")
                case _:
                    continue
    return "\n".join(lines)[-max_length:]
