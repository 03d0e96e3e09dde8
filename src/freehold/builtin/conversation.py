"""The messages of a conversation, the same for every provider, and how they are stored as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from freehold.builtin.json_rpc import Json


@dataclass(frozen=True)
class UserText:
    text: str


@dataclass(frozen=True)
class UserImage:
    data: str
    """Base64."""
    mime: str


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call, for the model."""

    call: str
    name: str
    text: str
    failed: bool = False


@dataclass(frozen=True)
class ModelText:
    text: str


@dataclass(frozen=True)
class ToolRequest:
    """A tool that the model wants to call. `arguments` is the text that it sent, which may not be JSON."""

    call: str
    name: str
    arguments: str
    signature: str | None = None
    """What Gemini wants back with the call."""

    def parse(self) -> Json:
        """The arguments. Raises ValueError when they are not an object."""
        given = json.loads(self.arguments or "{}")
        if not isinstance(given, dict):
            raise ValueError("the arguments are not an object")  # noqa: TRY004 - like text that is not JSON
        return given


@dataclass(frozen=True)
class OpaquePart:
    """A part that only its provider understands, such as encrypted reasoning. It goes back to the same API unchanged."""

    api: str
    value: Json


UserPart = UserText | UserImage | ToolResult
ModelPart = ModelText | ToolRequest | OpaquePart


@dataclass(frozen=True)
class UserMessage:
    """What the model is sent: a prompt, or results of tools."""

    parts: tuple[UserPart, ...]


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one request. `input` includes `cached`."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(self.input + other.input, self.output + other.output, self.cached + other.cached)


@dataclass(frozen=True)
class ModelMessage:
    """What the model answered."""

    parts: tuple[ModelPart, ...]
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def tool_requests(self) -> list[ToolRequest]:
        return [part for part in self.parts if isinstance(part, ToolRequest)]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ModelText))


Message = UserMessage | ModelMessage

_KINDS: dict[str, type[UserPart | ModelPart]] = {
    "prompt": UserText,
    "image": UserImage,
    "result": ToolResult,
    "text": ModelText,
    "call": ToolRequest,
    "opaque": OpaquePart,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_message(message: Message) -> Json:
    row: Json = {
        "from": "user" if isinstance(message, UserMessage) else "model",
        "parts": [{"kind": _NAMES[type(part)], **asdict(part)} for part in message.parts],
    }
    if isinstance(message, ModelMessage):
        row["usage"] = asdict(message.usage)
    return row


def decode_message(row: Json) -> Message:
    parts: Any = tuple(
        _KINDS[part["kind"]](**{key: value for key, value in part.items() if key != "kind"}) for part in row["parts"]
    )
    if row["from"] == "user":
        return UserMessage(parts)
    return ModelMessage(parts, TokenUsage(**row["usage"]))


def decode_messages_of_0_1_0(rows: Sequence[Json]) -> list[Message]:
    """Messages as version 0.1.0 stored them: in the format of the library that it used."""
    return [message for row in rows if (message := _decode_old(row)).parts]


def _decode_old(row: Json) -> Message:
    if row.get("kind") == "response":
        usage = row.get("usage") or {}
        counted = TokenUsage(
            usage.get("input_tokens") or 0, usage.get("output_tokens") or 0, usage.get("cache_read_tokens") or 0
        )
        return ModelMessage(tuple(_old_answer(row.get("parts", []))), counted)
    return UserMessage(tuple(_old_request(row.get("parts", []))))


def _old_answer(parts: Sequence[Json]) -> Iterator[ModelPart]:
    for part in parts:
        if part.get("part_kind") == "text":
            yield ModelText(str(part.get("content") or ""))
        elif part.get("part_kind") == "tool-call":
            given = part.get("args") or {}
            text = given if isinstance(given, str) else json.dumps(given)
            yield ToolRequest(str(part.get("tool_call_id")), str(part.get("tool_name")), text)


def _old_request(parts: Sequence[Json]) -> Iterator[UserPart]:
    for part in parts:
        content = part.get("content")
        match part.get("part_kind"):
            case "user-prompt":
                for piece in content if isinstance(content, list) else [content]:
                    if isinstance(piece, str):
                        yield UserText(piece)
                    elif isinstance(piece, dict) and piece.get("kind") == "binary":
                        # The library wrote Base64 with the characters of URLs.
                        data = str(piece.get("data")).replace("-", "+").replace("_", "/")
                        yield UserImage(data, str(piece.get("media_type")))
            case "tool-return" | "retry-prompt" if part.get("tool_name"):
                text = content if isinstance(content, str) else json.dumps(content)
                failed = part.get("outcome", "success") != "success" or part["part_kind"] == "retry-prompt"
                yield ToolResult(str(part.get("tool_call_id")), str(part["tool_name"]), text, failed)
            case _:
                continue
