"""Token counts are read from a response, however it is split."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.models.meter import Meter
from freehold.egress.models.usage import TokenCounts
from freehold.testing.api_formats import ScriptedReply, ScriptedUsage, encode_complete, encode_event, encode_stream
from freehold.testing.conversation import Api, Conversation
from freehold.testing.script import Say

APIS: list[Api] = ["chat", "responses", "messages", "gemini"]


def reply(api: Api, usage: ScriptedUsage) -> ScriptedReply:
    return ScriptedReply(Conversation(api, "m", (), (), True, True), Say("some words to say"), usage, int(time.time()))


@given(st.sampled_from(APIS), st.integers(0, 10**6), st.integers(0, 10**6), st.lists(st.integers(1, 200), max_size=20))
def test_any_cut_of_a_stream_is_counted_alike(api: Api, given_tokens: int, said: int, cuts: list[int]) -> None:
    answer = reply(api, ScriptedUsage(given_tokens, said, given_tokens // 2))
    data = b"".join(encode_event(api, event) for event in encode_stream(answer))
    meter = Meter(api, streamed=True, estimate=3)
    for cut in cuts:
        meter.feed(data[:cut])
        data = data[cut:]
    meter.feed(data)
    meter.end()
    output = max(said, 1) if api == "messages" else said
    assert meter.tokens is not None
    assert (meter.tokens.input, meter.tokens.cached) == (given_tokens, given_tokens // 2)
    assert meter.tokens.output == output
    assert meter.final
    assert meter.model == "m"


@pytest.mark.parametrize("api", APIS)
def test_a_whole_answer_is_counted(api: Api) -> None:
    meter = Meter(api, streamed=False, estimate=3)
    meter.feed(json.dumps(encode_complete(reply(api, ScriptedUsage(100, 20, 30)))).encode())
    meter.end()
    assert meter.seen == TokenCounts(100, 20, 30)
    assert meter.final


def test_thoughts_and_cache_writes_count() -> None:
    meter = Meter("gemini", streamed=False, estimate=0)
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    meter.feed(json.dumps({"usageMetadata": usage}).encode())
    meter.end()
    assert meter.seen.output == 12
    meter = Meter("messages", streamed=False, estimate=0)
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 4}
    meter.feed(json.dumps({"type": "message", "usage": usage}).encode())
    meter.end()
    assert meter.seen == TokenCounts(321, 4, 300, 20)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_without_usage_is_estimated_by_its_length(api: Api) -> None:
    meter = Meter(api, streamed=True, estimate=50)
    for _ in range(100):
        meter.feed(b'data: {"text": "' + b"words " * 100 + b'"}\n\n')
    assert meter.seen.input == 50
    assert meter.seen.output > 5_000
    assert not meter.final


@given(st.sampled_from(APIS), st.binary(max_size=300), st.booleans())
def test_no_stream_can_break_the_meter(api: Api, noise: bytes, streamed: bool) -> None:
    meter = Meter(api, streamed=streamed, estimate=1)
    meter.feed(b'data: {"usage": ' + noise + b"}\ndata: " + noise + b'"usage"\n')
    meter.end()
    assert meter.seen.input >= 0


@pytest.mark.parametrize("value", [-1, 1 << 50, 1.5, True, "7", None, [1], {"a": 1}])
def test_an_invalid_count_is_zero(value: object) -> None:
    meter = Meter("chat", streamed=True, estimate=9)
    usage = {"prompt_tokens": value, "completion_tokens": 3}
    meter.feed(f"data: {json.dumps({'usage': usage})}\n".encode())
    assert meter.tokens == TokenCounts(0, 3)


def test_the_word_usage_in_a_response_is_not_a_count() -> None:
    meter = Meter("chat", streamed=True, estimate=9)
    fooled = {"choices": [{"delta": {"content": '"usage": {"prompt_tokens": 1}'}}]}
    meter.feed(f"data: {json.dumps(fooled)}\n\n".encode())
    assert meter.tokens is None
