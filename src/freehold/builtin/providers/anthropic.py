"""Anthropic's messages."""

import json

from freehold.builtin.conversation import (
    Message,
    ModelText,
    OpaquePart,
    TokenUsage,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserText,
)
from freehold.builtin.json_rpc import Json
from freehold.builtin.providers.contract import ModelError, ProviderRequest, ReplyBuilder

API = "messages"
MAX_OUTPUT = 8192
"""Tokens. Every model of this API can write as many."""

_CACHED = {"cache_control": {"type": "ephemeral"}}
"""Marks the end of what stays the same, which then costs a tenth in the next request."""


class AnthropicMessages:
    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def path(self, model: str) -> str:
        return "/v1/messages"

    def body(self, request: ProviderRequest) -> Json:
        messages = [row for message in request.messages if (row := _encode(message))["content"]]
        if messages:
            messages[-1]["content"][-1] |= _CACHED
        body: Json = {
            "model": request.model,
            "max_tokens": MAX_OUTPUT,
            "system": [{"type": "text", "text": request.instructions, **_CACHED}],
            "messages": messages,
            "stream": True,
        }
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
        return body

    async def read_event(self, event: Json, reply: ReplyBuilder) -> None:
        match event.get("type"):
            case "message_start":
                usage = event["message"].get("usage") or {}
                cached = usage.get("cache_read_input_tokens") or 0
                written = usage.get("cache_creation_input_tokens") or 0
                reply.usage = TokenUsage((usage.get("input_tokens") or 0) + cached + written, 0, cached)
            case "content_block_start":
                block = event["content_block"]
                if block["type"] == "tool_use":
                    reply.begin_call(event["index"], block["id"], block["name"])
                elif block["type"] == "redacted_thinking":
                    reply.add_part(OpaquePart(API, block))
            case "content_block_delta":
                await _add_delta(event["index"], event["delta"], reply)
            case "message_delta":
                output = (event.get("usage") or {}).get("output_tokens") or 0
                reply.usage = TokenUsage(reply.usage.input, output, reply.usage.cached)
            case "error":
                raise ModelError(f"The model stopped with an error: {(event.get('error') or {}).get('message')}")
            case _:
                pass


async def _add_delta(index: int, delta: Json, reply: ReplyBuilder) -> None:
    match delta["type"]:
        case "text_delta":
            await reply.add_text(delta["text"])
        case "thinking_delta":
            await reply.add_thought(delta["thinking"])
        case "input_json_delta":
            reply.add_arguments(index, delta["partial_json"])
        case _:
            pass


def _encode(message: Message) -> Json:
    if isinstance(message, UserMessage):
        # Results come first: the API wants them directly after the calls.
        results = [_encode_result(part) for part in message.parts if isinstance(part, ToolResult)]
        others = [_encode_user(part) for part in message.parts if not isinstance(part, ToolResult)]
        return {"role": "user", "content": [*results, *others]}
    content: list[Json] = []
    for part in message.parts:
        match part:
            case ModelText(text=text) if text.strip():
                content.append({"type": "text", "text": text})
            case ToolRequest():
                content.append({"type": "tool_use", "id": part.call, "name": part.name, "input": _arguments(part)})
            case OpaquePart(api=api, value=value) if api == API:
                content.append(value)
            case _:
                continue
    return {"role": "assistant", "content": content}


def _encode_result(part: ToolResult) -> Json:
    row: Json = {"type": "tool_result", "tool_use_id": part.call, "content": part.text}
    return {**row, "is_error": True} if part.failed else row


def _encode_user(part: UserText | UserImage) -> Json:
    if isinstance(part, UserText):
        return {"type": "text", "text": part.text}
    return {"type": "image", "source": {"type": "base64", "media_type": part.mime, "data": part.data}}


def _arguments(part: ToolRequest) -> Json:
    try:
        return part.parse()
    except ValueError:
        # The call failed because of this; the API only accepts an object.
        return {"text": json.dumps(part.arguments)}
