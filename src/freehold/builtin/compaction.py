"""Making room before the model's context overflows: first old results go, then the past becomes a summary."""

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

FULL = 0.8
"""The part of the window above which room is made."""

RECENT = 6
"""Messages at the end that stay as they are."""

SMALL = 400
LEFT_OUT = "[left out to save room; do it again if you need it]"
LAST = "\n\nThe last thing I asked for:\n\n"
_CHARACTERS_A_TOKEN = 3.5

Summarise = Callable[[str], Awaitable[str]]


def size_of(messages: Sequence[ModelMessage]) -> int:
    """Tokens, roughly: what the model counted itself, and a guess for what came after."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            counted = message.usage.input_tokens + message.usage.output_tokens
            return max(counted, _guess(messages)) if at == 0 else counted + _guess(messages[at + 1 :])
    return _guess(messages)


def _guess(messages: Sequence[ModelMessage]) -> int:
    return int(len(ModelMessagesTypeAdapter.dump_json(list(messages))) / _CHARACTERS_A_TOKEN) if messages else 0


async def compact(messages: list[ModelMessage], window: int, summarise: Summarise) -> list[ModelMessage]:
    """The same conversation in less room. Calls and their results stay together."""
    lighter = [*(_without_results(message) for message in messages[:-RECENT]), *messages[-RECENT:]]
    if _guess(lighter) < window * FULL / 2:
        return lighter
    cut = _place_to_cut(lighter)
    if cut == 0:
        return lighter
    summary = await summarise(_told(lighter[:cut], int(window * FULL * _CHARACTERS_A_TOKEN / 2)))
    prompt = next((_prompt(message) for message in reversed(lighter[:cut]) if _prompt(message)), "")
    words = f"Before this, summed up because room was short:\n\n{summary}{LAST}{prompt.rpartition(LAST)[2]}"
    return [ModelRequest(parts=[UserPromptPart(words)]), *lighter[cut:]]


def _without_results(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        ToolReturnPart(part.tool_name, LEFT_OUT, part.tool_call_id)
        if isinstance(part, ToolReturnPart) and len(part.model_response_str()) > SMALL
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _place_to_cut(messages: Sequence[ModelMessage]) -> int:
    """The first message that stays: an answer of the model's, so that no result stands without its call."""
    for at in range(max(1, len(messages) - RECENT), len(messages)):
        if isinstance(messages[at], ModelResponse):
            return at
    return 0


def _prompt(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ""
    contents = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    words = [[content] if isinstance(content, str) else content for content in contents]
    return "\n".join(word for some in words for word in some if isinstance(word, str))


def _told(messages: Sequence[ModelMessage], most: int) -> str:
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
    return "\n".join(lines)[-most:]
