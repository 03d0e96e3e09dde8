"""The same answer in the formats of four APIs, complete or as a stream of events."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.testing.conversation import Api, Conversation, OfferedTool
from freehold.testing.script import Call, Say

Event = dict[str, Any]


@dataclass(frozen=True)
class ScriptedUsage:
    """The token counts that every answer reports."""

    input: int = 100
    output: int = 20
    cached: int = 0
    """How many of `input` were read from a cache."""


@dataclass(frozen=True)
class ScriptedReply:
    """One answer: the request, the step, and the usage to report."""

    conversation: Conversation
    step: Say | Call
    usage: ScriptedUsage
    created: int

    @property
    def pieces(self) -> list[str]:
        if isinstance(self.step, Call):
            text = self.arguments
            size = 20
        else:
            text, size = self.step.text, self.step.piece
        return [text[at : at + size] for at in range(0, len(text), size)]

    @property
    def arguments(self) -> str:
        assert isinstance(self.step, Call)
        given = self.step.arguments
        return given if isinstance(given, str) else json.dumps(given)

    @property
    def tool(self) -> OfferedTool:
        assert isinstance(self.step, Call)
        return self.conversation.tool(self.step.tool) or OfferedTool(self.step.tool, {})


def encode_stream(reply: ScriptedReply) -> Iterator[Event]:
    return _WIRES[reply.conversation.api][0](reply)


def encode_complete(reply: ScriptedReply) -> Event:
    return _WIRES[reply.conversation.api][1](reply)


def encode_event(api: Api, event: Event) -> bytes:
    """One server-sent event. Two of the APIs also name its type."""
    named = f"event: {event['type']}\n" if api in ("messages", "responses") else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


TOO_LONG = "prompt is too long: 300000 tokens > 200000 maximum"
"""The error message of a provider for a conversation that is larger than the context window."""


def error_body(api: Api | None, status: int, message: str) -> Event:
    """An error in the format of the API."""
    if api == "messages":
        kinds = {404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error", 500: "api_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "invalid_request_error"), "message": message}}
    if api == "gemini":
        return {"error": {"code": status, "message": message, "status": "RESOURCE_EXHAUSTED" if status == 429 else "X"}}
    kind = {400: "invalid_request_error", 429: "rate_limit_error"}.get(status, "server_error")
    code = "context_length_exceeded" if message == TOO_LONG else None
    return {"error": {"message": message, "type": kind, "code": code}}


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:16]


def _chat_usage(usage: ScriptedUsage) -> Event:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _chat_stream(reply: ScriptedReply) -> Iterator[Event]:
    shared = {
        "id": _id("chatcmpl-"),
        "object": "chat.completion.chunk",
        "created": reply.created,
        "model": reply.conversation.model,
    }

    def chunk(delta: Event, finish: str | None = None) -> Event:
        return {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if isinstance(reply.step, Say):
        for piece in reply.pieces:
            yield chunk({"content": piece})
        yield chunk({}, "stop")
    else:
        function = {"name": reply.tool.title, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": _id("call_"), "type": "function", "function": function}]})
        for piece in reply.pieces:
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls")
    if reply.conversation.wants_usage:
        yield {**shared, "choices": [], "usage": _chat_usage(reply.usage)}


def _chat_whole(reply: ScriptedReply) -> Event:
    message: Event = {"role": "assistant", "content": reply.step.text if isinstance(reply.step, Say) else None}
    if isinstance(reply.step, Call):
        function = {"name": reply.tool.title, "arguments": reply.arguments}
        message["tool_calls"] = [{"id": _id("call_"), "type": "function", "function": function}]
    finish = "stop" if isinstance(reply.step, Say) else "tool_calls"
    return {
        "id": _id("chatcmpl-"),
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.conversation.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _chat_usage(reply.usage),
    }


def _output_text(text: str) -> Event:
    return {"type": "output_text", "text": text, "annotations": []}


def _item(reply: ScriptedReply) -> Event:
    if isinstance(reply.step, Say):
        content = [_output_text(reply.step.text)]
        return {
            "id": _id("msg_"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    tool = reply.tool
    call = {"call_id": _id("call_"), "name": tool.name, "status": "completed"}
    if tool.custom:
        return {"id": _id("ctc_"), "type": "custom_tool_call", "input": reply.arguments, **call}
    space = {} if tool.namespace is None else {"namespace": tool.namespace}
    return {"id": _id("fc_"), "type": "function_call", "arguments": reply.arguments, **call, **space}


def _responses_stream(reply: ScriptedReply) -> Iterator[Event]:
    response = _response(reply, "in_progress", [])
    item = _item(reply)
    place = {"item_id": item["id"], "output_index": 0}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    begun = {**item, "status": "in_progress"}
    if isinstance(reply.step, Say):
        inner = {**place, "content_index": 0}
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**begun, "content": []}}
        yield {"type": "response.content_part.added", **inner, "part": _output_text("")}
        for piece in reply.pieces:
            yield {"type": "response.output_text.delta", **inner, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **inner, "text": reply.step.text, "logprobs": []}
        yield {"type": "response.content_part.done", **inner, "part": _output_text(reply.step.text)}
    else:
        key, kind = (
            ("input", "custom_tool_call_input") if reply.tool.custom else ("arguments", "function_call_arguments")
        )
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**begun, key: ""}}
        for piece in reply.pieces:
            yield {"type": f"response.{kind}.delta", **place, "delta": piece}
        yield {"type": f"response.{kind}.done", **place, key: item[key]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = _response_usage(reply.usage)
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def _numbered(events: Iterator[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _response(reply: ScriptedReply, status: str, output: list[Event]) -> Event:
    return {
        "id": _id("resp_"),
        "object": "response",
        "created_at": reply.created,
        "model": reply.conversation.model,
        "status": status,
        "output": output,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }


def _response_usage(usage: ScriptedUsage) -> Event:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _responses_whole(reply: ScriptedReply) -> Event:
    return {**_response(reply, "completed", [_item(reply)]), "usage": _response_usage(reply.usage)}


def _messages_usage(usage: ScriptedUsage) -> Event:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }


def _messages_stream(reply: ScriptedReply) -> Iterator[Event]:
    opening = {**_message(reply, [], None), "usage": {**_messages_usage(reply.usage), "output_tokens": 1}}
    yield {"type": "message_start", "message": opening}
    if isinstance(reply.step, Say):
        block: Event = {"type": "text", "text": ""}
    else:
        block = {"type": "tool_use", "id": _id("toolu_"), "name": reply.tool.title, "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    for piece in reply.pieces:
        said = isinstance(reply.step, Say)
        delta = {"type": "text_delta", "text": piece} if said else {"type": "input_json_delta", "partial_json": piece}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": reply.usage.output}}
    yield {"type": "message_stop"}


def _messages_whole(reply: ScriptedReply) -> Event:
    if isinstance(reply.step, Say):
        block: Event = {"type": "text", "text": reply.step.text}
    else:
        block = {"type": "tool_use", "id": _id("toolu_"), "name": reply.tool.title, "input": reply.step.arguments}
    return {**_message(reply, [block], _stop_reason(reply)), "usage": _messages_usage(reply.usage)}


def _message(reply: ScriptedReply, content: list[Event], stop_reason: str | None) -> Event:
    return {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.conversation.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
    }


def _stop_reason(reply: ScriptedReply) -> str:
    return "end_turn" if isinstance(reply.step, Say) else "tool_use"


def _gemini_chunk(reply: ScriptedReply, part: Event, finish: str | None) -> Event:
    candidate: Event = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if finish:
        candidate["finishReason"] = finish
    usage = {
        "promptTokenCount": reply.usage.input,
        "candidatesTokenCount": reply.usage.output,
        "cachedContentTokenCount": reply.usage.cached,
        "totalTokenCount": reply.usage.input + reply.usage.output,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": reply.conversation.model}


def _gemini_part(reply: ScriptedReply) -> Event:
    if isinstance(reply.step, Call):
        return {"functionCall": {"name": reply.tool.title, "args": reply.step.arguments}}
    # Gemini CLI asks for a routing decision in JSON before each turn.
    routing: Mapping[str, object] = {"reasoning": "scripted", "model_choice": "flash", "complexity_score": 1}
    return {"text": json.dumps(routing) if reply.conversation.wants_json else reply.step.text}


def _gemini_stream(reply: ScriptedReply) -> Iterator[Event]:
    if isinstance(reply.step, Call):
        yield _gemini_chunk(reply, _gemini_part(reply), "STOP")
        return
    for piece in reply.pieces:
        yield _gemini_chunk(reply, {"text": piece}, None)
    yield _gemini_chunk(reply, {"text": ""}, "STOP")


def _gemini_whole(reply: ScriptedReply) -> Event:
    return _gemini_chunk(reply, _gemini_part(reply), "STOP")


_Stream = Callable[[ScriptedReply], Iterator[Event]]
_Whole = Callable[[ScriptedReply], Event]
_WIRES: dict[Api, tuple[_Stream, _Whole]] = {
    "chat": (_chat_stream, _chat_whole),
    "responses": (lambda reply: _numbered(_responses_stream(reply)), _responses_whole),
    "messages": (_messages_stream, _messages_whole),
    "gemini": (_gemini_stream, _gemini_whole),
}
