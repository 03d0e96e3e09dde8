"""One request does not keep the gateway from serving others."""

import asyncio
import gzip
import json
import threading

import pytest
from tests.egress.models.gateway_harness import GatewayHarness, build_request
from tests.support.condition import DEADLINE, until

from freehold.egress.http1 import HttpRequest
from freehold.egress.models import request_server
from freehold.egress.models.model_request import ModelRequest, read_model_request
from freehold.egress.models.paths import Route
from freehold.egress.models.request_server import LARGE, MAX_CHECKS


class HeldCheck:
    """The check of a request with the word `long` begins, and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = threading.Event()

    def __call__(self, request: HttpRequest, route: Route, body: bytes) -> ModelRequest:
        checked = read_model_request(request, route, body)
        if b"long" in checked.body:
            self.begun += 1
            assert self.go_on.wait(DEADLINE)
        return checked


@pytest.fixture
def held_check(monkeypatch: pytest.MonkeyPatch) -> HeldCheck:
    held = HeldCheck()
    monkeypatch.setattr(request_server, "read_model_request", held)
    return held


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
async def test_while_a_large_request_is_checked_others_are_answered(
    packed: bool, gateway: GatewayHarness, held_check: HeldCheck
) -> None:
    """A compressed one is small until it is unpacked."""
    path, content = build_request("chat", "SAY long " + "x" * LARGE)
    body = json.dumps(content).encode()
    headers = {**gateway.headers(), **({"content-encoding": "gzip"} if packed else {})}
    large = asyncio.ensure_future(
        gateway.http.post(path, content=gzip.compress(body) if packed else body, headers=headers)
    )
    await until(lambda: held_check.begun == 1)
    assert (await gateway.ask(prompt="SAY short")).status_code == 200
    assert not large.done()
    held_check.go_on.set()
    assert (await large).status_code == 200


async def test_large_requests_leave_threads_for_other_work(gateway: GatewayHarness, held_check: HeldCheck) -> None:
    """Of more than a few at once the rest waits. Recording a bill needs a thread too."""
    many = [asyncio.ensure_future(gateway.ask(prompt="SAY long " + "x" * LARGE)) for _ in range(40)]
    await until(lambda: held_check.begun == MAX_CHECKS)
    assert (await gateway.ask(prompt="SAY short")).status_code == 200
    assert held_check.begun == MAX_CHECKS
    held_check.go_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*many)] == [200] * 40


async def test_a_session_that_ends_while_its_request_is_checked_sends_nothing(
    gateway: GatewayHarness, held_check: HeldCheck
) -> None:
    large = asyncio.ensure_future(gateway.ask(prompt="SAY long " + "x" * LARGE))
    await until(lambda: held_check.begun == 1)
    gateway.models.end_session("s1")
    held_check.go_on.set()
    assert (await large).status_code == 401
    assert not gateway.provider.requests


async def test_what_a_compressed_request_unpacks_to_counts_as_held(
    gateway: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a few kilobytes each would fill the memory of the host."""
    monkeypatch.setattr(request_server, "MAX_HELD", 1_000_000)
    path, content = build_request("chat", "x" * 2_000_000)
    packed = gzip.compress(json.dumps(content).encode())
    assert len(packed) < LARGE
    headers = {**gateway.headers(), "content-encoding": "gzip"}
    answer = await gateway.http.post(path, content=packed, headers=headers)
    assert answer.status_code == 503
    assert not gateway.provider.requests
    assert (await gateway.ask()).status_code == 200
