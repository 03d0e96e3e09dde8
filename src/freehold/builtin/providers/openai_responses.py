"""OpenAI's responses. Nothing is stored at the provider: reasoning comes encrypted and goes back with the next request."""

from collections.abc import Iterator

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

API = "responses"


class OpenAiResponses:
    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def path(self, model: str) -> str:
        return "/responses"

    def body(self, request: ProviderRequest) -> Json:
        body: Json = {
            "model": request.model,
            "instructions": request.instructions,
            "input": [item for message in request.messages for item in _encode(message)],
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in request.tools
            ]
        return body

    async def read_event(self, event: Json, reply: ReplyBuilder) -> None:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                await reply.add_text(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                await reply.add_thought(event["delta"])
            case "response.output_item.done":
                _add_item(event["item"], reply)
            case "response.completed" | "response.incomplete":
                usage = event["response"].get("usage") or {}
                cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
                reply.usage = TokenUsage(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0, cached)
            case "response.failed":
                raise ModelError(f"The model stopped with an error: {_words(event['response'].get('error'))}")
            case "error":
                raise ModelError(f"The model stopped with an error: {_words(event.get('error') or event)}")
            case _:
                pass


def _words(error: object) -> str:
    return str(error.get("message") if isinstance(error, dict) else error)


def _add_item(item: Json, reply: ReplyBuilder) -> None:
    if item.get("type") == "function_call":
        reply.add_part(ToolRequest(item["call_id"], item["name"], item.get("arguments") or ""))
    elif item.get("type") == "reasoning" and item.get("encrypted_content"):
        reply.add_part(OpaquePart(API, item))


def _encode(message: Message) -> Iterator[Json]:
    if isinstance(message, UserMessage):
        yield from _encode_user(message)
        return
    for part in message.parts:
        match part:
            case ModelText(text=text):
                yield {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
            case ToolRequest():
                yield {"type": "function_call", "call_id": part.call, "name": part.name, "arguments": part.arguments}
            case OpaquePart(api=api, value=value) if api == API:
                yield {key: value[key] for key in ("type", "summary", "encrypted_content") if key in value}
            case _:
                continue


def _encode_user(message: UserMessage) -> Iterator[Json]:
    content: list[Json] = []
    for part in message.parts:
        match part:
            case ToolResult():
                yield {"type": "function_call_output", "call_id": part.call, "output": part.text}
            case UserText(text=text):
                content.append({"type": "input_text", "text": text})
            case UserImage(data=data, mime=mime):
                content.append({"type": "input_image", "image_url": f"data:{mime};base64,{data}"})
    if content:
        yield {"role": "user", "content": content}
