"""A placeholder is worth something at one provider, for one session, while that lives; and nothing else is."""

import pytest
from tests.egress.models.doorway import KEY, Doorway, question

from freehold.errors import FreeholdError


async def test_without_a_placeholder_nothing_is_sent(door: Doorway) -> None:
    path, body = question("chat")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {KEY}"}, {"x-api-key": ""}):
        answer = await door.http.post(path, json=body, headers=headers)
        assert answer.status_code == 401
    assert not door.provider.requests


async def test_the_placeholder_of_another_provider_is_refused(door: Doorway) -> None:
    path, body = question("messages")
    answer = await door.http.post(path, json=body, headers=door.headers("openai"))
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"
    assert not door.provider.requests


async def test_two_placeholders_at_once_are_refused(door: Doorway) -> None:
    path, body = question("chat")
    headers = {**door.headers(session="s1"), "x-api-key": door.models.endpoint_for("openai", "s2").key}
    assert (await door.http.post(path, json=body, headers=headers)).status_code == 401
    assert not door.provider.requests


async def test_a_session_that_ended_leaves_nothing_behind(door: Doorway) -> None:
    headers = door.headers(session="gone")
    path, body = question("chat")
    assert (await door.http.post(path, json=body, headers=headers)).status_code == 200
    door.models.end_session("gone")
    assert (await door.http.post(path, json=body, headers=headers)).status_code == 401
    assert len(door.provider.requests) == 1


def test_each_session_has_its_own_and_keeps_it(door: Doorway) -> None:
    one, other = (door.models.endpoint_for("openai", session) for session in ("s1", "s2"))
    assert one == door.models.endpoint_for("openai", "s1")
    assert one.key != other.key
    assert one.base_url == "http://127.0.0.1:3129/openai/v1"
    assert door.models.endpoint_for("anthropic", "s1").base_url == "http://127.0.0.1:3129/anthropic"
    assert door.models.endpoint_for(None, "s1").provider.name == "openai"
    with pytest.raises(FreeholdError, match="no model provider"):
        door.models.endpoint_for("nobody", "s1")


async def test_what_a_session_asks_is_counted_as_its_own_and_in_its_turn(door: Doorway) -> None:
    door.models.set_turn("s1", "t1")
    await door.ask(session="s1")
    door.models.set_turn("s1", "t2")
    await door.ask("messages", session="s1")
    await door.ask(session="s2")
    first, second = await door.models.usage_of("s1", "t1"), await door.models.usage_of("s1", "t2")
    assert (first.requests, first.tokens.total) == (second.requests, second.tokens.total) == (1, 120)
    assert (await door.models.usage_of("s1")).requests == 2
    assert (await door.models.usage_of("s2")).requests == 1


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
async def test_a_request_that_could_be_read_in_two_ways_is_refused(request_head: bytes, door: Doorway) -> None:
    key = door.models.endpoint_for("openai", "s1").key.encode()
    back = await door.raw(request_head + b"Authorization: Bearer " + key + b"\r\n\r\n{}")
    assert back[9:12] in (b"400", b"413", b"431")
    assert back.count(b"HTTP/1.1 4") == 1
    assert not door.provider.requests


async def test_headers_that_change_what_was_checked_are_dropped(door: Doorway) -> None:
    path, body = question("chat")
    headers = {
        **door.headers(),
        "x-http-method-override": "DELETE",
        "x-original-url": "/v1/files",
        "cookie": "a=b",
        "connection": "x-secret-hop",
        "x-secret-hop": "1",
        "host": "elsewhere.example.org",
        "anthropic-beta": "kept",
    }
    assert (await door.http.post(path, json=body, headers=headers)).status_code == 200
    arrived = door.provider.requests[-1].headers
    assert not {"x-http-method-override", "x-original-url", "cookie", "x-secret-hop"} & set(arrived)
    assert arrived["host"] == f"127.0.0.1:{door.provider.port}"
    assert arrived["anthropic-beta"] == "kept"


async def test_refusals_are_written_down_once_for_many(door: Doorway) -> None:
    for _ in range(5):
        await door.http.post("/openai/v1/files", json={}, headers=door.headers())
    refused = door.events("models.request_refused")
    assert [event["code"] for event in refused] == ["models.closed"]
