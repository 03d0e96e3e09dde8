"""OpenAI's chat completions, which most other providers and local servers also speak."""

from collections.abc import Iterator
from typing import Any

from freehold.builtin.conversation import Message, TokenUsage, ToolResult, UserImage, UserMessage, UserText
from freehold.builtin.json_rpc import Json
from freehold.builtin.providers.contract import ModelError, ProviderRequest, ReplyBuilder


class OpenAiChat:
    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def path(self, model: str) -> str:
        return "/chat/completions"

    def body(self, request: ProviderRequest) -> Json:
        messages = [{"role": "system", "content": request.instructions}]
        for message in request.messages:
            messages += _encode(message)
        body: Json = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        return body

    async def read_event(self, event: Json, reply: ReplyBuilder) -> None:
        if isinstance(event.get("error"), dict):
            raise ModelError(f"The model stopped with an error: {event['error'].get('message')}")
        if isinstance(event.get("usage"), dict):
            usage = event["usage"]
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            reply.usage = TokenUsage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0, cached)
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            await reply.add_thought(delta.get("reasoning_content") or delta.get("reasoning") or "")
            await reply.add_text(delta.get("content") or "")
            for call in delta.get("tool_calls") or []:
                function: Json = call.get("function") or {}
                key = call.get("index", call.get("id"))
                if function.get("name"):
                    reply.begin_call(key, call.get("id") or f"call_{key}", function["name"])
                reply.add_arguments(key, function.get("arguments") or "")


def _encode(message: Message) -> Iterator[Json]:
    if not isinstance(message, UserMessage):
        row: Json = {"role": "assistant", "content": message.text or None}
        if message.tool_requests:
            row["tool_calls"] = [
                {"id": part.call, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
                for part in message.tool_requests
            ]
        if message.text or message.tool_requests:
            yield row
        return
    content: list[Any] = []
    for part in message.parts:
        match part:
            case ToolResult():
                yield {"role": "tool", "tool_call_id": part.call, "content": part.text}
            case UserText(text=text):
                content.append({"type": "text", "text": text})
            case UserImage(data=data, mime=mime):
                content.append({"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}})
    if len(content) == 1 and content[0]["type"] == "text":
        yield {"role": "user", "content": content[0]["text"]}
    elif content:
        yield {"role": "user", "content": content}
