"""What is sent to each provider, and what is made of its events."""

from collections.abc import Sequence

import pytest

from freehold.builtin.conversation import (
    Message,
    ModelMessage,
    ModelText,
    OpaquePart,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserText,
)
from freehold.builtin.json_rpc import Json
from freehold.builtin.providers.anthropic import AnthropicMessages
from freehold.builtin.providers.contract import (
    ModelError,
    ModelRefusal,
    ProviderApi,
    ProviderRequest,
    ReplyBuilder,
    read_pause,
)
from freehold.builtin.providers.gemini import GeminiContent, reduce_schema
from freehold.builtin.providers.openai_chat import OpenAiChat
from freehold.builtin.providers.openai_responses import OpenAiResponses
from freehold.builtin.tool import check_arguments, describe_function
from freehold.builtin.tools import all_tools

APIS: dict[str, ProviderApi] = {
    "chat": OpenAiChat(),
    "responses": OpenAiResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": GeminiContent(),
}
MESSAGES: list[Message] = [
    UserMessage((UserText("Look"), UserImage("AAAA", "image/png"))),
    ModelMessage(
        (
            OpaquePart("responses", {"type": "reasoning", "summary": [], "encrypted_content": "E", "id": "rs_1"}),
            ModelText("I read it."),
            ToolRequest("c1", "read", '{"path": "a"}', "S"),
            ToolRequest("c2", "run", "{broken"),
        )
    ),
    UserMessage((ToolResult("c1", "read", "text"), ToolResult("c2", "run", "wrong", failed=True))),
]


async def read_reply(api: ProviderApi, events: Sequence[Json]) -> tuple[ModelMessage, str, str]:
    said: list[str] = []
    thought: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    async def think(text: str) -> None:
        thought.append(text)

    reply = ReplyBuilder(say, think)
    for event in events:
        await api.read_event(event, reply)
    return reply.finish(), "".join(said), "".join(thought)


def test_a_conversation_is_written_for_chat_completions() -> None:
    user, answer, first, second = APIS["chat"].body(ProviderRequest("m", "I", MESSAGES))["messages"][1:]
    assert user["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert answer["content"] == "I read it."
    assert [call["id"] for call in answer["tool_calls"]] == ["c1", "c2"]
    assert (first["tool_call_id"], second["content"]) == ("c1", "wrong")


def test_reasoning_goes_back_to_responses_and_nothing_is_stored_there() -> None:
    body = APIS["responses"].body(ProviderRequest("m", "I", MESSAGES))
    assert body["store"] is False
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    expected = ["user", "reasoning", "assistant", "function_call", "function_call"]
    assert kinds == [*expected, "function_call_output", "function_call_output"]
    assert body["input"][1] == {"type": "reasoning", "summary": [], "encrypted_content": "E"}


def test_a_conversation_is_written_for_anthropic() -> None:
    body = APIS["anthropic"].body(ProviderRequest("m", "I", MESSAGES))
    user, answer, results = body["messages"]
    assert user["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert isinstance(answer["content"][2]["input"], dict)
    assert results["content"][1]["is_error"] is True
    assert results["content"][-1]["cache_control"] == {"type": "ephemeral"}


def test_a_conversation_is_written_for_gemini_with_its_signatures() -> None:
    body = APIS["gemini"].body(ProviderRequest("m", "I", MESSAGES))
    _, answer, results = body["contents"]
    assert answer["parts"][1]["thoughtSignature"] == "S"
    assert results["parts"][0]["functionResponse"] == {"name": "read", "response": {"output": "text"}}
    assert results["parts"][1]["functionResponse"] == {"name": "run", "response": {"error": "wrong"}}


@pytest.mark.parametrize("name", APIS)
def test_every_tool_is_offered_with_its_arguments(name: str) -> None:
    tools = [tool.description for tool in all_tools()]
    body = APIS[name].body(ProviderRequest("m", "I", MESSAGES[:1], tools))
    text = str(body["tools"])
    assert all(f"'{tool.name}'" in text for tool in tools)
    assert "The first line to read, counted from 1." in text


async def test_text_and_calls_of_chat_completions_are_put_together() -> None:
    def delta(**fields: object) -> Json:
        return {"choices": [{"delta": fields}]}

    message, said, thought = await read_reply(
        APIS["chat"],
        [
            delta(reasoning_content="hm"),
            delta(content="I "),
            delta(content="do."),
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}]),
            delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "run", "arguments": '{"x"'}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
            delta(tool_calls=[{"index": 1, "function": {"arguments": ":1}"}}]),
            {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        ],
    )
    assert (said, thought) == ("I do.", "hm")
    assert message.parts == (ModelText("I do."), ToolRequest("a", "read", "{}"), ToolRequest("b", "run", '{"x":1}'))
    assert (message.usage.input, message.usage.output) == (7, 3)


async def test_reasoning_of_responses_is_kept_in_its_place() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"}
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
    message, said, _ = await read_reply(
        APIS["responses"],
        [
            {"type": "response.output_item.done", "item": item},
            {"type": "response.output_text.delta", "delta": "Yes."},
            {"type": "response.output_item.done", "item": call},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        ],
    )
    assert said == "Yes."
    assert message.parts == (OpaquePart("responses", item), ModelText("Yes."), ToolRequest("c", "read", "{}"))


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("chat", {"error": {"message": "broken"}}),
        ("responses", {"type": "response.failed", "response": {"error": {"message": "broken"}}}),
        ("anthropic", {"type": "error", "error": {"message": "broken"}}),
        ("gemini", {"error": {"message": "broken"}}),
    ],
)
async def test_an_error_in_the_stream_is_the_reason(name: str, event: Json) -> None:
    with pytest.raises(ModelError, match="broken"):
        await read_reply(APIS[name], [event])


@pytest.mark.parametrize(
    ("status", "body", "overflow", "busy"),
    [
        (400, b'{"error": {"message": "x", "code": "context_length_exceeded"}}', True, False),
        (400, b'{"type": "error", "error": {"message": "prompt is too long: 300000 tokens"}}', True, False),
        (400, b'[{"error": {"message": "exceeds the maximum number of tokens allowed"}}]', True, False),
        (400, b'{"error": {"message": "no such model"}}', False, False),
        (429, b"slow down", False, True),
        (529, b"{}", False, True),
        (500, b"\xff", False, False),
    ],
)
def test_a_refusal_is_understood(status: int, body: bytes, overflow: bool, busy: bool) -> None:
    refusal = ModelRefusal("m", status, body, None)
    assert (refusal.is_overflow, refusal.is_busy) == (overflow, busy)
    assert f"answered {status}" in str(refusal)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "20"}, b"", 20.0),
        ({"retry-after": " 1.5 "}, b"", 1.5),
        ({"retry-after-ms": "250"}, b"", 0.25),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:50 GMT"}, b"", 10.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:30 GMT"}, b"", 0.0),
        ({}, b'{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34.5s"}]}}', 34.5),
        *(({"retry-after": odd}, b"", None) for odd in ("soon", "-1", "nan", "inf", "1e9", "٣", "9" * 400)),
        ({}, b"slow down", None),
    ],
)
def test_a_provider_is_waited_for_as_long_as_it_asks(headers: Json, body: bytes, seconds: float | None) -> None:
    assert read_pause(headers, body, 1_000_000_000.0) == seconds


def test_gemini_gets_only_the_words_that_it_knows() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "array", "items": {"type": "string", "$id": "x"}, "default": []}},
    }
    assert reduce_schema(schema) == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "path is missing"),
        ({"path": 1}, "path must be of the type string"),
        ({"path": "a", "offset": "x"}, "offset must be of the type integer"),
        ({"path": "a", "offset": True}, "offset must be of the type integer"),
        ({"path": "a", "where": 1}, "there is no where"),
    ],
)
def test_a_wrong_call_is_explained_to_the_model(given: Json, problem: str) -> None:
    read = next(tool for tool in all_tools() if tool.name == "read")
    with pytest.raises(ValueError, match=problem):
        check_arguments(given, read.description.schema)


def test_numbers_and_booleans_as_text_are_accepted() -> None:
    run = next(tool for tool in all_tools() if tool.name == "run")
    given = {"command": "ls", "timeout": "5", "background": "True"}
    assert check_arguments(given, run.description.schema) == {"command": "ls", "timeout": 5, "background": True}


def test_a_plan_is_checked_item_by_item() -> None:
    plan = next(tool for tool in all_tools() if tool.name == "plan")
    with pytest.raises(ValueError, match=r"entries\[1\]\.status must be one of"):
        check_arguments({"entries": [{"content": "a"}, {"content": "b", "status": "late"}]}, plan.description.schema)


async def test_a_function_is_described_by_its_docstring_and_signature() -> None:
    async def greet(_context: object, name: str, loud: bool = False) -> str:
        """Greet somebody.

        Args:
            name: Who.
        """
        return name.upper() if loud else name

    tool = describe_function(greet)
    assert tool.description.description == "Greet somebody."
    assert tool.description.schema["required"] == ["name"]
    assert tool.description.schema["properties"]["name"] == {"type": "string", "description": "Who."}
