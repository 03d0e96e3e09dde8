"""What an answer cost, read from it in whatever pieces it comes."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.models.meter import Meter
from freehold.egress.models.usage import Tokens
from freehold.testing.conversation import Api, Conversation
from freehold.testing.script import Say
from freehold.testing.wires import Reply, Usage, encode_event, stream_of, whole_of

APIS: list[Api] = ["chat", "responses", "messages", "gemini"]


def reply(api: Api, usage: Usage) -> Reply:
    return Reply(Conversation(api, "m", (), (), True, True), Say("some words to say"), usage, int(time.time()))


@given(st.sampled_from(APIS), st.integers(0, 10**6), st.integers(0, 10**6), st.lists(st.integers(1, 200), max_size=20))
def test_any_cut_of_a_stream_is_counted_alike(api: Api, given_tokens: int, said: int, cuts: list[int]) -> None:
    answer = reply(api, Usage(given_tokens, said, given_tokens // 2))
    data = b"".join(encode_event(api, event) for event in stream_of(answer))
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
    meter.feed(json.dumps(whole_of(reply(api, Usage(100, 20, 30)))).encode())
    meter.end()
    assert meter.seen == Tokens(100, 20, 30)
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
    assert meter.seen == Tokens(321, 4, 300, 20)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_tells_nothing_is_estimated_by_what_was_streamed(api: Api) -> None:
    meter = Meter(api, streamed=True, estimate=50)
    for _ in range(100):
        meter.feed(b'data: {"text": "' + b"words " * 100 + b'"}\n\n')
    assert meter.seen.input == 50
    assert meter.seen.output > 5_000
    assert not meter.final


@given(st.sampled_from(APIS), st.binary(max_size=300), st.booleans())
def test_nothing_that_is_streamed_can_break_it(api: Api, noise: bytes, streamed: bool) -> None:
    meter = Meter(api, streamed=streamed, estimate=1)
    meter.feed(b'data: {"usage": ' + noise + b"}\ndata: " + noise + b'"usage"\n')
    meter.end()
    assert meter.seen.input >= 0


@pytest.mark.parametrize("value", [-1, 1 << 50, 1.5, True, "7", None, [1], {"a": 1}])
def test_a_number_that_is_none_counts_as_nothing(value: object) -> None:
    meter = Meter("chat", streamed=True, estimate=9)
    usage = {"prompt_tokens": value, "completion_tokens": 3}
    meter.feed(f"data: {json.dumps({'usage': usage})}\n".encode())
    assert meter.tokens == Tokens(0, 3)


def test_a_word_called_usage_in_the_answer_is_only_a_word() -> None:
    meter = Meter("chat", streamed=True, estimate=9)
    fooled = {"choices": [{"delta": {"content": '"usage": {"prompt_tokens": 1}'}}]}
    meter.feed(f"data: {json.dumps(fooled)}\n\n".encode())
    assert meter.tokens is None
