"""The doctor is a program beside the gateway: started and stopped by an admin, followed live, its last report kept."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running import Running, next_message, running_gateway

BEGUN = {"event": "begun", "total": 2, "facts": {"kernel": "Test"}, "missing_walls": [], "manifest_errors": []}
WALLS = {
    "event": "isolation",
    "backend": "b",
    "version": "1",
    "uid": 7,
    "walls": ["mnt"],
    "limits": {"memory": "watch"},
}
HELD = {"event": "attempt", "name": "host-file", "claim": "reads a file", "outcome": "refused", "seen": "ENOENT"}
GONE = {"event": "attempt", "name": "network", "claim": "gets out", "outcome": "escaped", "seen": "1.1.1.1"}


def examine_with(gateway: Running, *lines: object, then: str = "") -> None:
    """Has the doctor print these lines and go on so."""
    app: Any = gateway.app._app
    text = "".join(json.dumps(line) + "\n" for line in lines)
    source = f"import sys, signal, time\nsys.stdout.write({text!r})\nsys.stdout.flush()\n{then}"
    app.state.examiner._argv = lambda quick: [sys.executable, "-c", source]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Running]:
    async with running_gateway(tmp_path) as running:
        yield running


async def until(gateway: Running, headers: dict[str, str], state: str) -> None:
    """Until the topic says so; one that was said before counts."""
    async with gateway.socket(headers) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": "doctor", "after": 0}))
        while (await next_message(socket, "event"))["data"]["state"] != state:
            pass


async def ask(gateway: Running, headers: dict[str, str], method: str = "GET", **more: Any) -> Any:
    answer = await gateway.http.request(method, "/v1/doctor", headers=headers, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_every_attempt_is_told_as_it_ends_and_the_report_is_kept(gateway: Running) -> None:
    headers = gateway.token("read", "admin")
    assert await ask(gateway, headers) == {"running": None, "last": None}
    examine_with(gateway, BEGUN, WALLS, HELD, GONE, {"event": "ended", "ok": False})
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
    (event,) = gateway.house.timeline.read(kinds=("doctor.examined",))
    assert (event.who, event.data["escaped"]) == ("token:script", 1)


async def test_there_is_one_at_a_time_and_it_can_be_stopped(gateway: Running) -> None:
    headers = gateway.token("read", "admin")
    examine_with(gateway, BEGUN, HELD, then="signal.pause()")
    await ask(gateway, headers, "POST", json={})
    await until(gateway, headers, "running")
    again = await gateway.http.post("/v1/doctor", json={}, headers=headers)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "doctor.conflict")
    assert (await ask(gateway, headers))["running"]["total"] in (0, 2)
    await ask(gateway, headers, "DELETE")
    await until(gateway, headers, "ended")
    assert await ask(gateway, headers) == {"running": None, "last": None}
    assert [event.kind for event in gateway.house.timeline.read(kinds=("doctor.*",))] == ["doctor.stopped"]


@pytest.mark.parametrize(
    ("lines", "then", "words"),
    [
        ([BEGUN, HELD], "sys.exit('no walls here')", "ended with 1: no walls here"),
        ([BEGUN, {"event": "attempt", "name": "x"}], "", "nobody understands"),
        ([["not", "an", "event"]], "signal.pause()", "nobody understands"),
        ([{"event": "rumour"}], "signal.pause()", "nobody understands"),
    ],
)
async def test_a_doctor_that_fails_is_no_good_report(
    gateway: Running, lines: list[object], then: str, words: str
) -> None:
    headers = gateway.token("read", "admin")
    examine_with(gateway, *lines, then=then)
    await ask(gateway, headers, "POST", json={})
    await until(gateway, headers, "ended")
    last = (await ask(gateway, headers))["last"]
    assert last["ok"] is False
    assert words in last["problem"]


async def test_the_gateway_takes_a_doctor_at_work_with_it(tmp_path: Path) -> None:
    """No process is left behind: the suite looks."""
    async with running_gateway(tmp_path) as gateway:
        headers = gateway.token("read", "admin")
        examine_with(gateway, BEGUN, then="signal.pause()")
        await ask(gateway, headers, "POST", json={})
        await until(gateway, headers, "running")


async def test_only_an_admin_of_this_very_page_starts_it(gateway: Running) -> None:
    reader, browser = gateway.token("read", name="reader"), gateway.browser()
    assert (await gateway.http.get("/v1/doctor")).status_code == 401
    assert (await gateway.http.post("/v1/doctor", json={})).status_code == 401
    assert (await gateway.http.post("/v1/doctor", json={}, headers=reader)).status_code == 403
    assert (await gateway.http.delete("/v1/doctor", headers=reader)).status_code == 403
    foreign = {**browser, "origin": "https://evil.example"}
    assert (await gateway.http.post("/v1/doctor", json={}, headers=foreign)).status_code == 403
    assert (await gateway.http.post("/v1/doctor", json={"fast": 1}, headers=browser)).status_code == 422
    assert (await ask(gateway, reader)) == {"running": None, "last": None}


async def test_others_are_answered_while_it_works(gateway: Running) -> None:
    headers = gateway.token("read", "admin")
    examine_with(gateway, BEGUN, then="\nwhile True: pass")
    await ask(gateway, headers, "POST", json={})
    await until(gateway, headers, "running")
    async with asyncio.timeout(20):
        for _ in range(20):
            assert (await gateway.http.get("/livez")).status_code == 200
    await ask(gateway, headers, "DELETE")
    await until(gateway, headers, "ended")
