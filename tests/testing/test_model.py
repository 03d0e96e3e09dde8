"""The scripted model over real sockets, in each of its four APIs."""

import asyncio
import contextlib
import gc
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from tests.support.condition import DEADLINE

from freehold.testing import Api, Call, Conversation, Say, ScriptedModel, ScriptedUsage, Step
from freehold.testing.conversation import ConversationTurn, OfferedTool, read_conversation
from freehold.testing.script import FAULTS, choose_step

PATHS: dict[Api, str] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/scripted:generateContent",
}
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
APIS = pytest.mark.parametrize("api", list(PATHS))


def ask(
    api: Api, prompt: str, *, result: str | None = None, stream: bool = False, tools: bool = True
) -> tuple[str, Any]:
    """A path and a body, as the clients of that API send them."""
    path = PATHS[api]
    if api == "gemini":
        contents: list[Any] = [{"role": "user", "parts": [{"text": prompt}]}]
        if result is not None:
            part = {"functionResponse": {"name": "bash", "response": {"output": result}}}
            contents.append({"role": "user", "parts": [part]})
        declared = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SHELL}]}] if tools else []
        path = path.replace(":generateContent", ":streamGenerateContent") if stream else path
        return path, {"contents": contents, "tools": declared}
    if api == "responses":
        given: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]
        if result is not None:
            given.append({"type": "function_call_output", "call_id": "c", "output": result})
        offered = [{"type": "function", "name": "bash", "parameters": SHELL}] if tools else []
        return path, {"model": "scripted", "input": given, "tools": offered, "stream": stream}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    if api == "messages":
        if result is not None:
            block = {"type": "tool_result", "tool_use_id": "t", "content": result}
            messages.append({"role": "user", "content": [block]})
        offered = [{"name": "bash", "input_schema": SHELL}] if tools else []
    else:
        if result is not None:
            messages.append({"role": "tool", "tool_call_id": "c", "content": result})
        offered = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}] if tools else []
    return path, {"model": "scripted", "messages": messages, "tools": offered, "stream": stream}


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as running:
        yield running


@pytest.fixture
async def http(model: ScriptedModel) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=model.url, trust_env=False, timeout=DEADLINE) as client:
        yield client


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@APIS
async def test_a_word_in_the_prompt_becomes_a_tool_call(api: Api, http: httpx2.AsyncClient) -> None:
    path, body = ask(api, "please RUN ls -la")
    called = (await http.post(path, json=body)).text
    assert "bash" in called
    assert "ls -la" in called
    path, body = ask(api, "please RUN ls -la", result="three files")
    said = (await http.post(path, json=body)).text
    assert "Done. Tool said: " in said
    assert "three files" in said


@APIS
async def test_a_stream_has_the_text_and_the_usage(api: Api, http: httpx2.AsyncClient) -> None:
    path, body = ask(api, "SAY all is well in the house", stream=True)
    if api == "chat":
        body["stream_options"] = {"include_usage": True}
    streamed = events((await http.post(path, json=body)).text)
    texts: dict[Api, Callable[[Any], str]] = {
        "chat": lambda e: "".join(c["delta"].get("content") or "" for c in e.get("choices", [])),
        "responses": lambda e: e["delta"] if e["type"] == "response.output_text.delta" else "",
        "messages": lambda e: e["delta"].get("text", "") if e["type"] == "content_block_delta" else "",
        "gemini": lambda e: e["candidates"][0]["content"]["parts"][0]["text"],
    }
    assert "".join(texts[api](event) for event in streamed) == "all is well in the house"
    usage: dict[Api, Callable[[Any], tuple[int, int]]] = {
        "chat": lambda e: (e[-1]["usage"]["prompt_tokens"], e[-1]["usage"]["completion_tokens"]),
        "responses": lambda e: (
            e[-1]["response"]["usage"]["input_tokens"],
            e[-1]["response"]["usage"]["output_tokens"],
        ),
        "messages": lambda e: (e[0]["message"]["usage"]["input_tokens"], e[-2]["usage"]["output_tokens"]),
        "gemini": lambda e: (
            e[-1]["usageMetadata"]["promptTokenCount"],
            e[-1]["usageMetadata"]["candidatesTokenCount"],
        ),
    }
    assert usage[api](streamed) == (100, 20)


async def test_a_chat_stream_has_no_usage_unless_asked(http: httpx2.AsyncClient) -> None:
    path, body = ask("chat", "SAY hello", stream=True)
    assert all("usage" not in event for event in events((await http.post(path, json=body)).text))


def test_each_tool_result_leads_to_the_next_line() -> None:
    def step(results: int) -> Say | Call | object:
        path, body = ask("chat", "RUN one\nRUN two\nSAY that was it")
        body["messages"] += [{"role": "tool", "content": "ok"}] * results
        return choose_step(read_conversation("chat", path, body))

    assert step(0) == Call("bash", {"command": "one"})
    assert step(1) == Call("bash", {"command": "two"})
    assert step(2) == Say("that was it")


async def test_a_list_of_steps_wins_over_the_prompt() -> None:
    steps: list[Step] = [Call("bash", {"command": "make lint"}), Say("green")]
    async with (
        ScriptedModel(steps) as model,
        httpx2.AsyncClient(base_url=model.url, trust_env=False, timeout=DEADLINE) as http,
    ):
        path, body = ask("messages", "RUN something else")
        assert "make lint" in (await http.post(path, json=body)).text
        path, body = ask("messages", "RUN something else", result="ok")
        assert "green" in (await http.post(path, json=body)).text


async def test_a_script_function_can_leave_requests_to_the_prompt() -> None:
    def script(conversation: Conversation) -> Say | None:
        return Say("seen") if "magic" in conversation.turns[-1].text else None

    running = ScriptedModel(script, usage=ScriptedUsage(7, 9))
    async with running as model, httpx2.AsyncClient(base_url=model.url, trust_env=False, timeout=DEADLINE) as http:
        path, body = ask("chat", "magic")
        answer = (await http.post(path, json=body)).json()
        assert answer["choices"][0]["message"]["content"] == "seen"
        assert answer["usage"]["total_tokens"] == 16
        path, body = ask("chat", "SAY other")
        assert "other" in (await http.post(path, json=body)).text


@APIS
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_it_answers_with_an_error_on_demand(api: Api, status: int, http: httpx2.AsyncClient) -> None:
    path, body = ask(api, f"FAIL {status}")
    assert (await http.post(path, json=body)).status_code == status


@APIS
async def test_it_cuts_a_stream_on_demand(api: Api, model: ScriptedModel, http: httpx2.AsyncClient) -> None:
    model.fail_next("cut")
    path, body = ask(api, "SAY hello", stream=True)
    with pytest.raises(httpx2.RemoteProtocolError):
        await http.post(path, json=body)
    assert (await http.post(path, json=body)).status_code == 200


async def test_it_hangs_until_released_and_counts_clients_that_disconnect(
    model: ScriptedModel, http: httpx2.AsyncClient
) -> None:
    path, body = ask("chat", "FAIL hang", stream=True)
    waiting = asyncio.ensure_future(http.post(path, json=body))
    await model.wait_received()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(DEADLINE):
        await model.wait_disconnected()
    model.release()
    assert (await http.post(path, json=body)).status_code == 200


def test_every_fault_can_be_requested_in_a_prompt() -> None:
    for fault in FAULTS:
        path, body = ask("chat", f"FAIL {fault}")
        step = choose_step(read_conversation("chat", path, body))
        assert getattr(step, "fault", None) == fault


async def test_it_disconnects_on_demand(model: ScriptedModel, http: httpx2.AsyncClient) -> None:
    model.fail_next("disconnect")
    path, body = ask("chat", "SAY hi")
    with pytest.raises(httpx2.TransportError):
        await http.post(path, json=body)


async def test_it_records_the_api_key(model: ScriptedModel, http: httpx2.AsyncClient) -> None:
    path, body = ask("messages", "SAY hi")
    await http.post(path, json=body, headers={"x-api-key": "k1"})
    path, body = ask("gemini", "SAY hi")
    await http.post(path, json=body, headers={"x-goog-api-key": "k2"})
    path, body = ask("chat", "SAY hi")
    await http.post(path, json=body, headers={"authorization": "Bearer k3"})
    assert [received.key for received in model.requests] == ["k1", "k2", "k3"]


async def test_unknown_and_invalid_requests_get_an_error(http: httpx2.AsyncClient) -> None:
    assert (await http.post("/v1/nowhere", json={})).status_code == 404
    assert (await http.post("/v1/messages", content=b"{")).status_code == 400
    assert (await http.get("/v1/models")).json()["data"][0]["id"] == "scripted"


def test_tools_that_take_a_list_of_commands_or_a_new_text_are_called_with_them() -> None:
    properties = {"commands": {"type": "array"}, "path": {"type": "string"}, "new_text": {"type": "string"}}
    schemas = {
        name: {"properties": {key: properties[key] for key in keys}, "required": keys}
        for name, keys in (("run_commands", ["commands"]), ("editor", ["path", "new_text"]))
    }
    tools = tuple(OfferedTool(name, schema) for name, schema in schemas.items())

    def choose(prompt: str) -> Step:
        turns = (ConversationTurn("user", prompt),)
        return choose_step(Conversation("chat", "scripted", turns, tools, stream=False, wants_usage=False))

    assert choose("RUN echo hi") == Call("run_commands", {"commands": ["echo hi"]})
    assert choose("WRITE /workspace/a.txt made") == Call("editor", {"path": "/workspace/a.txt", "new_text": "made\n"})


@pytest.mark.parametrize("rounds", range(8))
async def test_a_connection_that_arrives_while_the_model_ends_is_closed(rounds: int) -> None:
    """After so many rounds of the event loop. One that is left open is an error of the test."""
    async with ScriptedModel() as model:
        client = socket.create_connection(("127.0.0.1", model.port), timeout=DEADLINE)
        for _ in range(rounds):
            await asyncio.sleep(0)
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    gc.collect()
