"""Pictures in the results of tools, such as a screenshot: which are taken, which are sent, and what stands for the rest.

They come after the results in the same message, as every API accepts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from freehold.builtin.conversation import Message, ToolResult, UserImage, UserMessage, UserPart

MAX_PICTURES = 4
"""Of one result."""
MAX_SENT = 8
"""Tool pictures of a whole conversation that one request may have."""
MAX_DATA = 8 * 1024 * 1024
"""Characters of Base64."""
TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
OLD = "[its pictures are left out to save space; call the tool again if you need them]"
UNSEEN = "[its pictures are left out: this model does not take pictures]"


@dataclass(frozen=True)
class ToolOutput:
    """What a tool returns to the model when it is more than text."""

    text: str
    pictures: tuple[UserImage, ...] = ()


def read_pictures(content: Sequence[object]) -> tuple[UserImage, ...]:
    """The pictures of a result of MCP that a model can be sent."""
    found: list[UserImage] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "image":
            data, mime = part.get("data"), part.get("mimeType")
            if isinstance(data, str) and isinstance(mime, str) and mime in TYPES and 0 < len(data) <= MAX_DATA:
                found.append(UserImage(data, mime))
    return tuple(found[:MAX_PICTURES])


def count_pictures(message: Message) -> int:
    """Of tools. Those of a prompt are not counted."""
    if not isinstance(message, UserMessage) or not any(isinstance(part, ToolResult) for part in message.parts):
        return 0
    return sum(isinstance(part, UserImage) for part in message.parts)


def drop_pictures(message: Message, words: str) -> Message:
    """The message without pictures of tools; the last result says so."""
    if not isinstance(message, UserMessage) or not count_pictures(message):
        return message
    kept: list[UserPart] = [part for part in message.parts if not isinstance(part, UserImage)]
    last = max(at for at, part in enumerate(kept) if isinstance(part, ToolResult))
    result = kept[last]
    assert isinstance(result, ToolResult)
    kept[last] = replace(result, text=f"{result.text}\n{words}".lstrip())
    return UserMessage(tuple(kept))


def limit_pictures(messages: Sequence[Message]) -> list[Message]:
    """With the newest pictures only. Several are dropped at a time: what a provider has cached stays valid meanwhile."""
    step = MAX_SENT // 2
    excess = sum(map(count_pictures, messages)) - MAX_SENT
    drop = 0 if excess <= 0 else -(-excess // step) * step
    limited: list[Message] = []
    for message in messages:
        limited.append(drop_pictures(message, OLD) if drop > 0 else message)
        drop -= count_pictures(message)
    return limited
