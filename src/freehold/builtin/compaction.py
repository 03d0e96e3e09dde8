"""Makes a conversation smaller before it exceeds the model's context: first old results are left out, then the begin is summarised."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from freehold.builtin.conversation import (
    Message,
    ModelMessage,
    ModelText,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserText,
    encode_message,
)
from freehold.builtin.tool_pictures import OLD, drop_pictures

COMPACTION_THRESHOLD = 0.8
"""The part of the context window above which the conversation is compacted."""

RECENT_MESSAGES = 6
"""Messages at the end that are never changed."""

MAX_KEPT_RESULT = 400
"""Characters. Longer results of old tool calls are left out."""

TOKENS_A_PICTURE = 1600
"""About what providers count for a picture of a screen."""

LEFT_OUT = "[left out to save space; call the tool again if you need it]"
LAST_REQUEST = "\n\nMy last request:\n\n"
_CHARACTERS_A_TOKEN = 3.5

Summarise = Callable[[str], Awaitable[str]]


def count_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens: what the model counted, and an estimate for the messages after that."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelMessage) and message.usage.input:
            counted = message.usage.input + message.usage.output
            return max(counted, _estimate(messages)) if at == 0 else counted + _estimate(messages[at + 1 :])
    return _estimate(messages)


def _estimate(messages: Sequence[Message]) -> int:
    pictures = [part for message in messages for part in message.parts if isinstance(part, UserImage)]
    text = sum(len(json.dumps(encode_message(message))) for message in messages) - sum(
        len(one.data) for one in pictures
    )
    return int(text / _CHARACTERS_A_TOKEN) + TOKENS_A_PICTURE * len(pictures)


async def compact(messages: Sequence[Message], window: int, summarise: Summarise) -> list[Message]:
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
    return [UserMessage((UserText(text),)), *shorter[cut:]]


def _without_results(message: Message) -> Message:
    if not isinstance(message, UserMessage):
        return message
    parts = tuple(
        replace(part, text=LEFT_OUT) if isinstance(part, ToolResult) and len(part.text) > MAX_KEPT_RESULT else part
        for part in message.parts
    )
    return drop_pictures(UserMessage(parts), OLD)


def _find_cut(messages: Sequence[Message]) -> int:
    """The first message that stays. It is an answer of the model, so that no result loses its call."""
    for at in range(max(1, len(messages) - RECENT_MESSAGES), len(messages)):
        if isinstance(messages[at], ModelMessage):
            return at
    return 0


def _prompt(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, UserText))


def _as_text(messages: Sequence[Message], max_length: int) -> str:
    lines: list[str] = []
    for message in messages:
        for part in message.parts:
            match part:
                case UserText(text=text):
                    lines.append(f"User: {text}")
                case ModelText(text=text):
                    lines.append(f"Agent: {text}")
                case ToolRequest():
                    lines.append(f"Agent called {part.name}: {part.arguments[:1000]}")
                case ToolResult():
                    lines.append(f"Result: {part.text[:1000]}")
                case _:
                    continue
    return "\n".join(lines)[-max_length:]
