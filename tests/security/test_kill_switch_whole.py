"""`freehold stop` on a whole Freehold: a daemon that an agent left behind is ended and loses its connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest='[agents.builtin]\nmodel = "local"\n')

TALK = """
import os, socket, sys, time
if sys.argv[2] == "daemon":
    # Two forks, a Unix session of its own, no environment.
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    for descriptor in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
    os.execve("/usr/bin/python3", ["agents-daemon", "-I", __file__, sys.argv[1], "deaf"], {})
client = socket.create_connection(("127.0.0.1", EGRESS_PORT))
client.sendall(f"GET http://127.0.0.1:{sys.argv[1]}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{sys.argv[1]}\\r\\n\\r\\n".encode())
while client.recv(1000):
    pass
while sys.argv[2] == "deaf":  # its connection is closed, and it stays
    time.sleep(600)
print("cut", flush=True)
""".replace("EGRESS_PORT", str(EGRESS_PORT))


class EndlessServer:
    """Its answers never end. Counts its open connections."""

    def __init__(self) -> None:
        self.port = 0
        self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def endless_server() -> AsyncIterator[EndlessServer]:
    endless = EndlessServer()
    server = await asyncio.start_server(endless.serve, "127.0.0.1", 0)
    endless.port = server.sockets[0].getsockname()[1]
    try:
        yield endless
    finally:
        server.close()


async def daemons_of(computer: Computer) -> list[int]:
    return [one.pid for one in await computer.processes() if one.command[:1] == ["agents-daemon"] and one.state != "Z"]


@pytest.mark.parametrize("way", ["command line", "API"])
async def test_a_daemon_of_an_agent_is_ended_and_its_connection_is_closed(freehold: RunningFreehold, way: str) -> None:
    """And those of the owner keep running: a terminal, and a program that has to connect again."""
    freehold.file("talk.py").write_text(TALK)
    session = await freehold.open("builtin")
    async with (
        endless_server() as server,
        freehold.watch(session) as watch,
        Computer.connect(freehold.harness.home.computer_socket()) as computer,
    ):
        target = f"127.0.0.1:{server.port}"
        added = await freehold.http.post("/v1/egress/rules", json={"verdict": "allow", "pattern": target})
        assert added.status_code == 201, added.text
        await freehold.prompt(session, f"RUN python3 talk.py {server.port} daemon")
        await watch.answer("once")
        await watch.until("turn.ended")
        await until(lambda: daemons_of(computer))
        await until(lambda: server.open == 1)
        terminal = await computer.terminal(["/bin/cat"])
        async with await computer.spawn(["/usr/bin/python3", "-I", "talk.py", str(server.port), "itself"]) as own:
            await until(lambda: server.open == 2)
            if way == "API":
                await freehold.call("POST", "/v1/stop", why="test")
                summary = str(await until(lambda: _summary(freehold)))
            else:
                summary = str(json.loads(freehold.harness.run("stop", "--json").stdout)["summary"])
            assert await daemons_of(computer) == []
            assert summary.startswith("No process of an agent runs any more (")
            assert "Your own terminals, services and commands keep running" in summary
            assert "2 network connections closed" in summary
            await until(lambda: server.open == 0)
            assert await own.stdout.read() == b"cut\n"
            await terminal.write(b"here\n")
            await terminal.read_until(b"here\r\nhere")
        await terminal.close()
        await freehold.call("POST", "/v1/stop/lift")
        await freehold.call("DELETE", f"/v1/egress/rules/{target}")


async def _summary(freehold: RunningFreehold) -> str | None:
    found: str | None = (await freehold.call("GET", "/v1/stop"))["summary"]
    return found


async def test_a_second_stop_ends_what_is_there_as_well(freehold: RunningFreehold) -> None:
    """Nothing starts an agent meanwhile, but a process that is known as an agent's is ended all the same."""
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        freehold.harness.run("stop")
        async with await computer.spawn(["/bin/sleep", "600"], apart="session") as process:
            assert "No process of an agent runs any more (1 process killed)." in freehold.harness.run("stop").stdout
            assert (await process.wait()).signal == 9
        await freehold.call("POST", "/v1/stop/lift")
