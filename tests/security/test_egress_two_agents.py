"""Two real agents in one computer: what the owner allows to one conversation, only that conversation may use."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from tests.egress.proxy_harness import OK, FakeServer, respond_once, run_server
from tests.support.running_freehold import FreeholdOptions, RunningFreehold
from tests.support.session_watch import Json, SessionWatch

from freehold.computer import Computer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest='[agents.builtin]\nmodel = "local"\n')

FETCH = "NO_PROXY= no_proxy= curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/"
"""Prints the status. The server listens on the host's loopback, where only a rule that names it leads."""


@pytest_asyncio.fixture(loop_scope="module")
async def server() -> AsyncIterator[FakeServer]:
    async with run_server(respond_once(OK)) as server:
        yield server


@dataclass(frozen=True)
class Conversation:
    """A session with its agent, and a watcher that has seen everything so far."""

    freehold: RunningFreehold
    session: str
    watch: SessionWatch

    async def run(self, command: str) -> str:
        """What a command of the agent prints."""
        await self.freehold.prompt(self.session, f"RUN {command} > output.txt")
        await self.watch.answer("once")
        await self.watch.until("turn.ended")
        return self.freehold.file("output.txt").read_text()

    async def fetch(self, server: FakeServer) -> str:
        return await self.run(FETCH.format(port=server.port))

    async def request_egress(self, server: FakeServer) -> Json:
        """The agent asks with the host tool; the owner answers "this conversation". The approval as the owner saw it."""
        given = {"host": "127.0.0.1", "port": server.port, "why": "the tests"}
        await self.freehold.prompt(self.session, f"CALL request_egress {json.dumps(given)}")
        asked: Json = (await self.watch.until("approval", state="pending"))["data"]
        await self.freehold.call("POST", f"/v1/approvals/{asked['id']}", answer="conversation")
        await self.watch.until("turn.ended")
        assert f"The user allowed 127.0.0.1:{server.port} for this conversation only." in self.watch.text()
        return asked

    async def rewind(self) -> None:
        """Ends the agent; the session goes on with a new one."""
        await self.freehold.call("POST", f"/v1/sessions/{self.session}/rewind", turn=1, what="chat", dry_run=False)


@asynccontextmanager
async def converse(freehold: RunningFreehold) -> AsyncIterator[Conversation]:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        yield Conversation(freehold, session, watch)


async def fetch_from_terminal(freehold: RunningFreehold, server: FakeServer) -> str:
    """As the owner's own terminal does: apart from every session."""
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        return (await computer.run(FETCH.format(port=server.port))).text


async def conversation_rules(freehold: RunningFreehold) -> list[Json]:
    rules: list[Json] = (await freehold.call("GET", "/v1/egress"))["rules"]
    return [rule for rule in rules if rule["reach"] == "conversation"]


async def test_one_agent_may_and_the_other_may_not(freehold: RunningFreehold, server: FakeServer) -> None:
    """Neither may after the conversation has ended, nor may the owner's terminal at any time."""
    async with converse(freehold) as one, converse(freehold) as another:
        assert await one.fetch(server) == "403"
        asked = await one.request_egress(server)
        assert f"127.0.0.1:{server.port}, for this conversation only." in asked["parts"][0]["text"]
        (rule,) = await conversation_rules(freehold)
        assert rule["session"] == one.session
        assert await one.fetch(server) == "200"
        assert await another.fetch(server) == "403"
        assert await fetch_from_terminal(freehold, server) == "403"
        assert len(server.heads) == 1
        await one.rewind()
        assert await one.fetch(server) == "403"
        assert await another.fetch(server) == "403"
        assert await conversation_rules(freehold) == []
        assert len(server.heads) == 1


@pytest.mark.parametrize("end", ["delete", "stop"])
async def test_a_deleted_session_and_the_kill_switch_end_what_was_allowed(
    freehold: RunningFreehold, server: FakeServer, end: str
) -> None:
    """Also for a program that the agent left running with the session's password."""
    async with converse(freehold) as one, Computer.connect(freehold.harness.home.computer_socket()) as computer:
        await one.request_egress(server)
        left = {"http_proxy": (await one.run("printenv http_proxy")).strip()}
        assert (await computer.run(FETCH.format(port=server.port), env=left)).text == "200"
        if end == "delete":
            await freehold.call("DELETE", f"/v1/sessions/{one.session}")
        else:
            await freehold.call("POST", "/v1/stop")
        assert (await computer.run(FETCH.format(port=server.port), env=left)).text == "403"
        async with asyncio.timeout(30):
            while await conversation_rules(freehold):
                continue
        await freehold.call("POST", "/v1/stop/lift")
        assert len(server.heads) == 1


async def test_a_network_request_says_which_session_asked(freehold: RunningFreehold) -> None:
    """The owner's answer for the conversation lets that session's connection, which waits, go on."""
    async with converse(freehold) as one:
        await freehold.prompt(
            one.session, "RUN curl -s -o /dev/null http://nowhere.invalid/ -w '%{http_code}' > waited.txt"
        )
        await one.watch.answer("once")
        async with asyncio.timeout(30):
            while not (pending := (await freehold.call("GET", "/v1/egress"))["pending"]):
                continue
        (request,) = pending
        assert (request["target"], request["session"]) == ("nowhere.invalid:80", one.session)
        await freehold.call("POST", f"/v1/egress/requests/{request['id']}", answer="conversation")
        await one.watch.until("turn.ended")
        # It was allowed; the name does not exist.
        assert freehold.file("waited.txt").read_text() == "502"
        assert [rule["session"] for rule in await conversation_rules(freehold)] == [one.session]


async def test_a_password_ends_with_the_agent_it_was_given_to(freehold: RunningFreehold, server: FakeServer) -> None:
    """An agent that gives its own password away gives away what its conversation may do, until it ends."""
    async with converse(freehold) as one:
        await one.request_egress(server)
        given = (await one.run("printenv http_proxy")).strip()
        assert given.startswith(f"http://{one.session}:")
        command = FETCH.format(port=server.port)
        async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
            assert (await computer.run(command, env={"http_proxy": given})).text == "200"
            await one.rewind()
            assert (await computer.run(command, env={"http_proxy": given})).text == "403"
            assert (await computer.run(command, env={"http_proxy": given.replace("@", "x@")})).text == "407"
