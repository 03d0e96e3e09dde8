"""Whatever is forwarded has one reading: three real servers see exactly the one request that was meant.

The same as a nightly attack: tests/attack/targets/http_framing.py.
"""

import json
from pathlib import Path
from random import Random

import pytest
from tests.egress.framing_fuzz import check_against, make_request
from tests.egress.http_servers import real_servers
from tests.egress.models.gateway_fuzz import (
    attack_as_client,
    attack_as_provider,
    gateway_to_hostile_provider,
    gateway_to_servers,
)
from tests.egress.proxy_harness import FakeResolver, run_proxy
from tests.support.condition import until

SEED = 12
REQUESTS = 1000
CLIENTS = 40
PROVIDERS = 60


@pytest.mark.parametrize("explicit", [True, False], ids=["model gateway", "proxy"])
async def test_three_servers_see_the_one_request_that_was_meant_and_nothing_behind_it(explicit: bool) -> None:
    random = Random(SEED)
    async with real_servers() as servers:
        forwarded = [
            await check_against(servers, make_request(random), explicit=explicit) for _ in range(REQUESTS // 2)
        ]
    assert sum(forwarded) > len(forwarded) / 4
    assert not all(forwarded)


BODY = b"POST /v1/files HTTP/1.1\r\nHost: hidden\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
BOTH = b"Transfer-Encoding: chunked\r\n" + LENGTH
CASES = {
    "a body on GET": (b"GET", LENGTH, BODY, False, True),
    "a body on HEAD": (b"HEAD", LENGTH, BODY, False, True),
    "chunks on GET": (b"GET", b"Transfer-Encoding: chunked\r\n", CHUNKS, False, True),
    "a body on DELETE": (b"DELETE", LENGTH, BODY, False, True),
    "a body on POST": (b"POST", LENGTH, BODY, True, True),
    "chunks on POST": (b"POST", b"Transfer-Encoding: chunked\r\n", CHUNKS, True, True),
    "no body on POST": (b"POST", b"", b"", True, True),
    "two lengths": (b"POST", LENGTH + LENGTH, BODY, False, False),
    "a length and chunks": (b"POST", BOTH, CHUNKS, False, False),
    "a bare line feed": (b"POST", LENGTH + b"X: a\nY: b\r\n", BODY, False, False),
    "a length of nothing and a body": (b"POST", b"Content-Length: 0\r\n", BODY, True, True),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_classic_tricks_are_refused_or_read_in_one_way(case: str) -> None:
    method, fields, body, by_gateway, by_proxy = CASES[case]
    raw = method + b" /a HTTP/1.1\r\nHost: example.org\r\n" + fields + b"\r\n" + body
    async with real_servers() as servers:
        assert await check_against(servers, raw, explicit=True) == by_gateway
        assert await check_against(servers, raw, explicit=False) == by_proxy


@pytest.mark.parametrize("explicit", [True, False], ids=["model gateway", "proxy"])
async def test_a_client_that_hangs_up_at_any_byte_has_no_whole_request_forwarded(explicit: bool) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: a\r\n"
    counted = head + b"Content-Length: 8\r\n\r\n12345678"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n"
    async with real_servers() as servers:
        for raw in (counted, chunked):
            for cut in range(1, len(raw)):
                await check_against(servers, raw[:cut], explicit=explicit)
            for server in servers:
                assert await server.take_seen() == []
            assert await check_against(servers, raw, explicit=explicit)
            for server in servers:
                assert [request.body for request in await server.take_seen()] == [b"12345678", b""]


async def test_hostile_clients_of_the_model_gateway_reach_real_servers_with_whole_requests_only(tmp_path: Path) -> None:
    random = Random(SEED)
    async with real_servers() as servers, gateway_to_servers(tmp_path, servers) as gateway:
        for _ in range(CLIENTS):
            for server in servers:
                await attack_as_client(gateway, server, random)


async def test_hostile_clients_of_the_proxy_reach_real_servers_with_one_request_each(tmp_path: Path) -> None:
    random = Random(SEED)
    names = FakeResolver()
    names.set("example.org", ["127.0.0.1"])
    async with real_servers() as servers:
        allow = [f"example.org:{server.port}" for server in servers]
        async with run_proxy(tmp_path, allow=allow, names=names) as proxy:
            for server in servers:
                url = f"http://example.org:{server.port}/plain"
                answers = []
                for _ in range(CLIENTS):
                    raw = make_request(random, (url,), ())
                    reader, writer = await proxy.open()
                    writer.write(raw)
                    writer.write_eof()
                    answers.append(await reader.read())
                    writer.close()
                await until(lambda: len(proxy.egress.connections) == 0)
                seen = await server.take_seen()
                assert {request.target for request in seen} <= {"/plain"}, json.dumps([each.target for each in seen])
                answered = [answer for answer in answers if b"x-seen" in answer.lower()]
                assert len(answered) <= len(seen) <= CLIENTS
                assert len(answered) > CLIENTS / 5


async def test_a_hostile_provider_gives_no_question_the_answer_of_another(tmp_path: Path) -> None:
    random = Random(SEED)
    async with gateway_to_hostile_provider(tmp_path) as (gateway, hostile, provider):
        for _ in range(PROVIDERS):
            await attack_as_provider(gateway, hostile, random)
        assert len(provider.connections) < len(provider.requests)
