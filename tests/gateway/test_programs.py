"""Programs as the keeper tells of them, and starting one anew."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.gateway.running import Running

from freehold.errors import FreeholdError
from freehold.keeper.desk import ProgramParams
from freehold.keeper.methods import Methods, NoParams
from freehold.keeper.rpc import RpcServer

PROGRAM = {
    "name": "ssh",
    "state": "ready",
    "required": False,
    "pid": 12,
    "since": 1.5,
    "lives": 3,
    "restarts": 2,
    "memory": 1000,
    "last_error": None,
    "next_start_in": None,
}
STATUS: dict[str, Any] = {
    "home": "/home/x",
    "ready": True,
    "since": "2026-11-15T00:00:00Z",
    "missing": [],
    "keeper": {"pid": 11, "since": 1.0, "memory": 2000},
    "programs": [PROGRAM],
    "ports": [{"name": "gateway", "host": "127.0.0.1", "port": 3000}],
    "isolation": None,
    "usage": {"memory": 5, "disk": None},
    "timeline_trouble": None,
    "advice": [{"code": "W1", "message": "m", "hint": "h"}],
}


class StandIn:
    """A keeper's socket that tells a status and notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[ProgramParams] = []
        self.heard = asyncio.Event()

    async def status(self, _: NoParams) -> dict[str, Any]:
        return STATUS

    async def restart(self, params: ProgramParams) -> dict[str, Any]:
        if params.program not in ("ssh", "gateway"):
            raise FreeholdError("keeper.no-such-program", "There is no such program", hint="The programs are: ssh")
        self.asked.append(params)
        self.heard.set()
        return {**PROGRAM, "state": "ready"}


@asynccontextmanager
async def keeper(gateway: Running) -> AsyncIterator[StandIn]:
    stand_in, methods = StandIn(), Methods()
    methods.add_call("status", NoParams, stand_in.status)
    methods.add_call("restart", ProgramParams, stand_in.restart)
    async with RpcServer(gateway.house.home.keeper_socket, methods).serve():
        yield stand_in


async def test_every_program_is_told_and_the_keeper_with_them(gateway: Running) -> None:
    async with keeper(gateway):
        told = (await gateway.http.get("/v1/programs", headers=gateway.token("read"))).json()
    own, ssh = told["programs"]
    assert (own["name"], own["pid"], own["can_restart"]) == ("keeper", 11, False)
    assert (ssh["name"], ssh["restarts"], ssh["memory"], ssh["can_restart"]) == ("ssh", 2, 1000, True)
    assert told["usage"] == {"memory": 5, "disk": None}
    assert told["limits"]["memory"] == 4 * 1024**3
    assert told["advice"][0]["code"] == "W1"


async def test_a_program_is_restarted_in_the_name_of_who_asked(gateway: Running) -> None:
    headers = gateway.token("admin")
    async with keeper(gateway) as stand_in:
        answer = await gateway.http.post("/v1/programs/ssh/restart", headers=headers)
        assert answer.json() == {"name": "ssh", "begun": True, "state": "ready"}
        assert stand_in.asked == [ProgramParams("ssh", "token:script")]
        nobody = await gateway.http.post("/v1/programs/nobody/restart", headers=headers)
        assert (nobody.status_code, nobody.json()["error"]["code"]) == (404, "program.not-found")


async def test_the_gateway_answers_before_it_goes_and_the_keeper_never_goes(gateway: Running) -> None:
    headers = gateway.browser()
    async with keeper(gateway) as stand_in:
        answer = await gateway.http.post("/v1/programs/gateway/restart", headers=headers)
        assert answer.json() == {"name": "gateway", "begun": False, "state": None}
        async with asyncio.timeout(10):
            await stand_in.heard.wait()
        assert stand_in.asked == [ProgramParams("gateway", "owner")]
        refused = await gateway.http.post("/v1/programs/keeper/restart", headers=headers)
        assert (refused.status_code, len(stand_in.asked)) == (403, 1)


async def test_who_may_not_restarts_nothing(gateway: Running) -> None:
    path = "/v1/programs/ssh/restart"
    async with keeper(gateway) as stand_in:
        assert (await gateway.http.post(path)).status_code == 401
        for scope in ("read", "prompt", "terminal"):
            headers = gateway.token(scope, name=scope)
            assert (await gateway.http.post(path, headers=headers)).status_code == 403
        foreign = {**gateway.browser(), "origin": "https://evil.example"}
        assert (await gateway.http.post(path, headers=foreign)).status_code == 403
        assert stand_in.asked == []


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/programs"), ("POST", "/v1/programs/ssh/restart")])
async def test_a_keeper_that_is_away_is_said_to_be(gateway: Running, method: str, path: str) -> None:
    answer = await gateway.http.request(method, path, headers=gateway.token("read", "admin"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "keeper.not-running")
