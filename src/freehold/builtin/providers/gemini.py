"""Gemini's generateContent."""

import json
import os
from collections.abc import Iterator

from freehold.builtin.conversation import (
    Message,
    ModelText,
    TokenUsage,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserText,
)
from freehold.builtin.json_rpc import Json
from freehold.builtin.providers.contract import ModelError, ProviderRequest, ReplyBuilder

_ALLOWED = ("type", "properties", "required", "items", "enum", "description", "format", "nullable", "anyOf")
"""The words of a JSON schema that this API knows."""


class GeminiContent:
    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def path(self, model: str) -> str:
        return f"/v1beta/models/{model}:streamGenerateContent?alt=sse"

    def body(self, request: ProviderRequest) -> Json:
        contents = [row for message in request.messages if (row := _encode(message))["parts"]]
        body: Json = {"systemInstruction": {"parts": [{"text": request.instructions}]}, "contents": contents}
        if request.tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parameters": reduce_schema(tool.schema)}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        return body

    async def read_event(self, event: Json, reply: ReplyBuilder) -> None:
        if isinstance(event.get("error"), dict):
            raise ModelError(f"The model stopped with an error: {event['error'].get('message')}")
        if isinstance(event.get("usageMetadata"), dict):
            usage = event["usageMetadata"]
            output = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
            cached = usage.get("cachedContentTokenCount") or 0
            reply.usage = TokenUsage(usage.get("promptTokenCount") or 0, output, cached)
        for candidate in event.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if "functionCall" in part:
                    call = part["functionCall"]
                    key = object()
                    name = call.get("id") or f"call_{os.urandom(8).hex()}"
                    reply.begin_call(key, name, call["name"], part.get("thoughtSignature"))
                    reply.add_arguments(key, json.dumps(call.get("args") or {}))
                elif part.get("thought"):
                    await reply.add_thought(part.get("text") or "")
                else:
                    await reply.add_text(part.get("text") or "")


def reduce_schema(schema: Json) -> Json:
    """The schema without the words that this API refuses."""
    kept: Json = {key: schema[key] for key in _ALLOWED if key in schema}
    if isinstance(kept.get("properties"), dict):
        kept["properties"] = {name: reduce_schema(below) for name, below in kept["properties"].items()}
        if not kept["properties"]:
            del kept["properties"]
    if isinstance(kept.get("items"), dict):
        kept["items"] = reduce_schema(kept["items"])
    if isinstance(kept.get("anyOf"), list):
        kept["anyOf"] = [reduce_schema(each) for each in kept["anyOf"] if isinstance(each, dict)]
    return kept


def _encode(message: Message) -> Json:
    if isinstance(message, UserMessage):
        return {"role": "user", "parts": list(_encode_user(message))}
    parts: list[Json] = []
    for part in message.parts:
        match part:
            case ModelText(text=text) if text:
                parts.append({"text": text})
            case ToolRequest():
                row: Json = {"functionCall": {"name": part.name, "args": _arguments(part)}}
                if part.signature is not None:
                    row["thoughtSignature"] = part.signature
                parts.append(row)
            case _:
                continue
    return {"role": "model", "parts": parts}


def _encode_user(message: UserMessage) -> Iterator[Json]:
    for part in message.parts:
        match part:
            case ToolResult():
                outcome = {"error" if part.failed else "output": part.text}
                yield {"functionResponse": {"name": part.name, "response": outcome}}
            case UserText(text=text):
                yield {"text": text}
            case UserImage(data=data, mime=mime):
                yield {"inlineData": {"mimeType": mime, "data": data}}


def _arguments(part: ToolRequest) -> Json:
    try:
        return part.parse()
    except ValueError:
        return {}
