"""The list of programs, and restarts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.keeper import calls
from freehold.keeper.calls import RestartProgram
from freehold.keeper.methods import RpcMethods
from freehold.keeper.rpc import RpcServer

PROGRAM = calls.ProgramStatus(
    name="ssh",
    state="ready",
    required=False,
    pid=12,
    since=1.5,
    starts=3,
    restarts=2,
    memory=1000,
    last_error=None,
    next_start_in=None,
)
USAGE = calls.ComputerUsage(
    memory=5,
    memory_peak=None,
    processes=None,
    cpu_seconds=None,
    disk=None,
    inodes=None,
    out_of_memory=None,
    refused_processes=None,
)
STATUS = calls.KeeperStatus(
    version="0.1.0",
    home="/home/x",
    boot="b",
    ready=True,
    since="2026-11-15T00:00:00Z",
    missing=(),
    keeper=calls.KeeperProcess(pid=11, since=1.0, memory=2000),
    programs=(PROGRAM,),
    ports=(calls.ListeningPort("gateway", "127.0.0.1", 3000),),
    url="http://localhost:3000",
    keeper_url="http://localhost:8001",
    manifest=calls.ManifestFile("/home/x/freehold.toml", "0"),
    advice=(calls.ManifestAdvice("W1", "m", "h"),),
    isolation=None,
    usage=USAGE,
    sleep=calls.SleepStatus(1800.0, True, 1000.0, 5_000_000, 3, 60.0, None),
    disk=calls.DiskStatus(
        "/home/x", 5_000_000_000, 20_000_000_000, "ok", "5.0 GB of 20 GB free on the disk of /home/x"
    ),
    timeline_trouble=None,
    events=(),
)


class FakeKeeper:
    """A keeper's socket that answers with a status and records restarts."""

    def __init__(self) -> None:
        self.asked: list[RestartProgram] = []
        self.heard = asyncio.Event()

    async def status(self, _: calls.GetKeeperStatus) -> calls.KeeperStatus:
        return STATUS

    async def restart(self, params: RestartProgram) -> calls.ProgramStatus:
        if params.program not in ("ssh", "gateway"):
            raise FreeholdError("keeper.no-such-program", "There is no such program", hint="The programs are: ssh")
        self.asked.append(params)
        self.heard.set()
        return replace(PROGRAM, state="ready")


@asynccontextmanager
async def keeper(gateway: RunningGateway) -> AsyncIterator[FakeKeeper]:
    stand_in, methods = FakeKeeper(), RpcMethods()
    methods.add_call(calls.GetKeeperStatus, stand_in.status)
    methods.add_call(RestartProgram, stand_in.restart)
    async with RpcServer(gateway.services.home.keeper_socket, methods).serve():
        yield stand_in


async def test_all_programs_are_listed_with_the_keeper(gateway: RunningGateway) -> None:
    async with keeper(gateway):
        told = (await gateway.http.get("/v1/programs", headers=gateway.token("read"))).json()
    own, ssh = told["programs"]
    assert (own["name"], own["pid"], own["can_restart"]) == ("keeper", 11, False)
    assert (ssh["name"], ssh["restarts"], ssh["memory"], ssh["can_restart"]) == ("ssh", 2, 1000, True)
    assert told["usage"] == vars(USAGE)
    assert told["limits"]["memory"] == 4 * 1024**3
    assert told["advice"][0]["code"] == "W1"


async def test_a_restart_records_who_asked(gateway: RunningGateway) -> None:
    headers = gateway.token("admin")
    async with keeper(gateway) as stand_in:
        answer = await gateway.http.post("/v1/programs/ssh/restart", headers=headers)
        assert answer.json() == {"name": "ssh", "begun": True, "state": "ready"}
        assert stand_in.asked == [RestartProgram("ssh", "token:script")]
        nobody = await gateway.http.post("/v1/programs/nobody/restart", headers=headers)
        assert (nobody.status_code, nobody.json()["error"]["code"]) == (404, "program.not-found")


async def test_the_gateway_answers_before_its_restart_and_the_keeper_is_never_restarted(
    gateway: RunningGateway,
) -> None:
    headers = gateway.browser()
    async with keeper(gateway) as stand_in:
        answer = await gateway.http.post("/v1/programs/gateway/restart", headers=headers)
        assert answer.json() == {"name": "gateway", "begun": False, "state": None}
        async with asyncio.timeout(DEADLINE):
            await stand_in.heard.wait()
        assert stand_in.asked == [RestartProgram("gateway", "owner")]
        refused = await gateway.http.post("/v1/programs/keeper/restart", headers=headers)
        assert (refused.status_code, len(stand_in.asked)) == (403, 1)


async def test_a_restart_needs_the_scope_admin_and_our_own_origin(gateway: RunningGateway) -> None:
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
async def test_a_keeper_that_does_not_run_is_reported(gateway: RunningGateway, method: str, path: str) -> None:
    answer = await gateway.http.request(method, path, headers=gateway.token("read", "admin"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "keeper.not-running")
