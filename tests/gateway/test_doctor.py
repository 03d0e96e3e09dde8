"""The doctor as a second process of the gateway: started and stopped by an admin, its last report stored."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway, next_message, running_gateway
from tests.support.condition import DEADLINE

from freehold.gateway.doctor_runner import SCHEMA

STARTED = {"event": "begun", "total": 2, "facts": {"kernel": "Test"}, "missing_walls": [], "manifest_errors": []}
ISOLATION = {
    "event": "isolation",
    "backend": "b",
    "version": "1",
    "runs_as": "uid 7",
    "walls": ["mnt"],
    "limits": {"memory": "watch"},
}
REFUSED = {"event": "attempt", "name": "host-file", "claim": "reads a file", "outcome": "refused", "seen": "ENOENT"}
ESCAPED = {"event": "attempt", "name": "network", "claim": "gets out", "outcome": "escaped", "seen": "1.1.1.1"}


def replace_doctor(gateway: RunningGateway, *lines: object, then: str = "") -> None:
    """Replace the doctor by a program that prints these lines and then runs `then`."""
    app: Any = gateway.app._app
    text = "".join(json.dumps(line) + "\n" for line in lines)
    source = f"import sys, signal, time\nsys.stdout.write({text!r})\nsys.stdout.flush()\n{then}"
    app.state.context.doctor._command = lambda quick: [sys.executable, "-c", source]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as running:
        yield running


async def wait_for_state(gateway: RunningGateway, headers: dict[str, str], state: str) -> None:
    """Wait until the topic has published this state, also when that was before."""
    async with gateway.socket(headers) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": "doctor", "after": 0}))
        while (await next_message(socket, "event"))["data"]["state"] != state:
            pass


async def ask(gateway: RunningGateway, headers: dict[str, str], method: str = "GET", **more: Any) -> Any:
    answer = await gateway.http.request(method, "/v1/doctor", headers=headers, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_every_attempt_is_published_as_it_ends_and_the_report_is_stored(gateway: RunningGateway) -> None:
    headers = gateway.token("read", "admin")
    assert await ask(gateway, headers) == {"running": None, "last": None}
    replace_doctor(gateway, STARTED, ISOLATION, REFUSED, ESCAPED, {"event": "ended", "ok": False})
    async with gateway.socket(headers) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": "doctor"}))
        await next_message(socket, "subscribed")
        assert (await ask(gateway, headers, "POST", json={"quick": True}))["running"]["quick"] is True
        told: list[Any] = []
        while not told or told[-1]["state"] != "ended":
            told.append((await next_message(socket, "event"))["data"])
    assert [(each["done"], each["total"]) for each in told] == [(0, 0), (0, 2), (0, 2), (1, 2), (2, 2), (2, 2), (2, 2)]
    assert told[4]["latest"]["name"] == "network"
    state = await ask(gateway, headers)
    assert state["running"] is None
    last = state["last"]
    assert (last["ok"], last["problem"], last["who"], last["quick"]) == (False, None, "token:script", True)
    assert [attempt["outcome"] for attempt in last["attempts"]] == ["refused", "escaped"]
    assert last["isolation"]["walls"] == ["mnt"]
    (event,) = gateway.services.timeline.read(kinds=("doctor.examined",))
    assert (event.who, event.data["escaped"]) == ("token:script", 1)


async def test_only_one_examination_runs_at_a_time_and_it_can_be_stopped(gateway: RunningGateway) -> None:
    headers = gateway.token("read", "admin")
    replace_doctor(gateway, STARTED, REFUSED, then="signal.pause()")
    await ask(gateway, headers, "POST", json={})
    await wait_for_state(gateway, headers, "running")
    again = await gateway.http.post("/v1/doctor", json={}, headers=headers)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "doctor.conflict")
    assert (await ask(gateway, headers))["running"]["total"] in (0, 2)
    await ask(gateway, headers, "DELETE")
    await wait_for_state(gateway, headers, "ended")
    assert await ask(gateway, headers) == {"running": None, "last": None}
    assert [event.kind for event in gateway.services.timeline.read(kinds=("doctor.*",))] == ["doctor.stopped"]


@pytest.mark.parametrize(
    ("lines", "then", "words"),
    [
        ([STARTED, REFUSED], "sys.exit('no walls here')", "ended with exit code 1: no walls here"),
        ([STARTED, {"event": "attempt", "name": "x"}], "", "not one of its events"),
        ([["not", "an", "event"]], "signal.pause()", "not one of its events"),
        ([{"event": "rumour"}], "signal.pause()", "not one of its events"),
    ],
)
async def test_a_doctor_that_fails_gives_a_report_that_is_not_ok(
    gateway: RunningGateway, lines: list[object], then: str, words: str
) -> None:
    headers = gateway.token("read", "admin")
    replace_doctor(gateway, *lines, then=then)
    await ask(gateway, headers, "POST", json={})
    await wait_for_state(gateway, headers, "ended")
    last = (await ask(gateway, headers))["last"]
    assert last["ok"] is False
    assert words in last["problem"]


async def test_the_gateway_ends_a_running_doctor_when_it_stops(tmp_path: Path) -> None:
    """No process is left behind: the suite checks that."""
    async with running_gateway(tmp_path) as gateway:
        headers = gateway.token("read", "admin")
        replace_doctor(gateway, STARTED, then="signal.pause()")
        await ask(gateway, headers, "POST", json={})
        await wait_for_state(gateway, headers, "running")


async def test_only_an_admin_on_our_own_page_starts_it(gateway: RunningGateway) -> None:
    reader, browser = gateway.token("read", name="reader"), gateway.browser()
    assert (await gateway.http.get("/v1/doctor")).status_code == 401
    assert (await gateway.http.post("/v1/doctor", json={})).status_code == 401
    assert (await gateway.http.post("/v1/doctor", json={}, headers=reader)).status_code == 403
    assert (await gateway.http.delete("/v1/doctor", headers=reader)).status_code == 403
    foreign = {**browser, "origin": "https://evil.example"}
    assert (await gateway.http.post("/v1/doctor", json={}, headers=foreign)).status_code == 403
    assert (await gateway.http.post("/v1/doctor", json={"fast": 1}, headers=browser)).status_code == 422
    assert (await ask(gateway, reader)) == {"running": None, "last": None}


async def test_other_requests_are_answered_while_the_doctor_runs(gateway: RunningGateway) -> None:
    headers = gateway.token("read", "admin")
    replace_doctor(gateway, STARTED, then="\nwhile True: pass")
    await ask(gateway, headers, "POST", json={})
    await wait_for_state(gateway, headers, "running")
    async with asyncio.timeout(DEADLINE):
        for _ in range(20):
            assert (await gateway.http.get("/livez")).status_code == 200
    await ask(gateway, headers, "DELETE")
    await wait_for_state(gateway, headers, "ended")


async def test_a_report_that_0_1_0_stored_is_still_shown(gateway: RunningGateway) -> None:
    isolation = {"backend": "bubblewrap", "version": "0.8", "uid": 64242, "walls": ["mnt"], "limits": {}}
    report = {
        "at": "2026-01-01T00:00:00Z",
        "who": "owner",
        "quick": True,
        "seconds": 1.0,
        "ok": True,
        "problem": None,
        "facts": {},
        "missing_walls": [],
        "manifest_errors": [],
        "isolation": isolation,
        "attempts": [],
    }
    gateway.services.timeline.ensure_schema("doctor", SCHEMA)
    with gateway.services.timeline.transaction() as tx:
        tx.execute("INSERT INTO doctor_report VALUES (1, ?)", (json.dumps(report),))
    shown = (await ask(gateway, gateway.token("read")))["last"]["isolation"]
    assert shown["runs_as"] == "uid 64242"
