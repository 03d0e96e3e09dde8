"""A placeholder is accepted at one provider, for one session, while the session lives."""

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness, build_request

from freehold.errors import FreeholdError


async def test_without_a_placeholder_nothing_is_sent(gateway: GatewayHarness) -> None:
    path, body = build_request("chat")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {KEY}"}, {"x-api-key": ""}):
        answer = await gateway.http.post(path, json=body, headers=headers)
        assert answer.status_code == 401
    assert not gateway.provider.requests


async def test_the_placeholder_of_another_provider_is_refused(gateway: GatewayHarness) -> None:
    path, body = build_request("messages")
    answer = await gateway.http.post(path, json=body, headers=gateway.headers("openai"))
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"
    assert not gateway.provider.requests


async def test_two_placeholders_at_once_are_refused(gateway: GatewayHarness) -> None:
    path, body = build_request("chat")
    headers = {**gateway.headers(session="s1"), "x-api-key": gateway.models.endpoint_for("openai", "s2").key}
    assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 401
    assert not gateway.provider.requests


async def test_placeholders_of_an_ended_session_are_refused(gateway: GatewayHarness) -> None:
    headers = gateway.headers(session="gone")
    path, body = build_request("chat")
    assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 200
    gateway.models.end_session("gone")
    assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 401
    assert len(gateway.provider.requests) == 1


def test_each_session_has_its_own_and_keeps_it(gateway: GatewayHarness) -> None:
    one, other = (gateway.models.endpoint_for("openai", session) for session in ("s1", "s2"))
    assert one == gateway.models.endpoint_for("openai", "s1")
    assert one.key != other.key
    assert one.base_url == "http://127.0.0.1:3129/openai/v1"
    assert gateway.models.endpoint_for("anthropic", "s1").base_url == "http://127.0.0.1:3129/anthropic"
    assert gateway.models.endpoint_for(None, "s1").provider.name == "openai"
    with pytest.raises(FreeholdError, match="no model provider"):
        gateway.models.endpoint_for("nobody", "s1")


async def test_usage_is_counted_for_the_session_and_its_turn(gateway: GatewayHarness) -> None:
    gateway.models.set_turn("s1", "t1")
    await gateway.ask(session="s1")
    gateway.models.set_turn("s1", "t2")
    await gateway.ask("messages", session="s1")
    await gateway.ask(session="s2")
    first, second = await gateway.models.usage_of("s1", "t1"), await gateway.models.usage_of("s1", "t2")
    assert (first.requests, first.tokens.total) == (second.requests, second.tokens.total) == (1, 120)
    assert (await gateway.models.usage_of("s1")).requests == 2
    assert (await gateway.models.usage_of("s2")).requests == 1


@pytest.mark.parametrize(
    "request_head",
    [
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nContent-Length : 5\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nX: a\r\n b\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\nX: a\n",
        b"POST /openai/v1/chat/completions HTTP/2.0\r\n",
        b"POST  /openai/v1/chat/completions HTTP/1.1\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nX: \x00\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nExpect: something\r\nContent-Length: 2\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n",
        b"POST /openai/v1/chat/completions HTTP/1.1\r\n" + b"X: y\r\n" * 200,
        b"POST /openai/v1/chat/completions HTTP/1.1\r\nX: " + b"y" * 40_000 + b"\r\n",
    ],
)
async def test_a_request_that_could_be_read_in_two_ways_is_refused(
    request_head: bytes, gateway: GatewayHarness
) -> None:
    key = gateway.models.endpoint_for("openai", "s1").key.encode()
    back = await gateway.raw(request_head + b"Authorization: Bearer " + key + b"\r\n\r\n{}")
    assert back[9:12] in (b"400", b"413", b"431")
    assert back.count(b"HTTP/1.1 4") == 1
    assert not gateway.provider.requests


async def test_headers_that_change_what_was_checked_are_dropped(gateway: GatewayHarness) -> None:
    path, body = build_request("chat")
    headers = {
        **gateway.headers(),
        "x-http-method-override": "DELETE",
        "x-original-url": "/v1/files",
        "cookie": "a=b",
        "connection": "x-secret-hop",
        "x-secret-hop": "1",
        "host": "elsewhere.example.org",
        "anthropic-beta": "kept",
    }
    assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 200
    arrived = gateway.provider.requests[-1].headers
    assert not {"x-http-method-override", "x-original-url", "cookie", "x-secret-hop"} & set(arrived)
    assert arrived["host"] == f"127.0.0.1:{gateway.provider.port}"
    assert arrived["anthropic-beta"] == "kept"


async def test_many_refusals_are_recorded_once(gateway: GatewayHarness) -> None:
    for _ in range(5):
        await gateway.http.post("/openai/v1/files", json={}, headers=gateway.headers())
    refused = gateway.events("models.request_refused")
    assert [event["code"] for event in refused] == ["models.closed"]
