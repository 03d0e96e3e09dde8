"""A computer that does not answer the kill switch: its network is closed all the same, and the owner is told."""

import asyncio
from typing import Any

import pytest
from tests.gateway.preview_harness import running_previews
from tests.support.condition import DEADLINE, until

from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.library import computer as library
from freehold.computer.library.link import Link
from freehold.computer.library.process import Process
from freehold.computer.library.request import send_request

SEND = """
import socket, sys, time
target = f"127.0.0.1:{sys.argv[1]}"
while True:
    try:
        client = socket.create_connection(("127.0.0.1", EGRESS_PORT))
        client.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
        is_open = b" 200 " in client.recv(1000)
        print("open" if is_open else "refused", flush=True)
        while is_open:
            client.sendall(b"secret")
            time.sleep(0.01)
    except OSError:
        print("cut", flush=True)
    time.sleep(0.05)
""".replace("EGRESS_PORT", str(EGRESS_PORT))


class CollectingServer:
    """Counts its open connections and what it was sent."""

    def __init__(self) -> None:
        self.open = 0
        self.received = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while data := await reader.read(1000):
                self.received += len(data)
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()


class MuteComputer:
    """While it is mute, a request to end the sessions gets no answer. Everything else works, the tunnels too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_mute = True
        monkeypatch.setattr(library, "send_request", self)
        monkeypatch.setattr(library, "_END_TIMEOUT", 1.0)

    async def __call__(self, link: Link, request: dict[str, Any]) -> Any:
        if self.is_mute and request["op"] == "sessions.end":
            await asyncio.Event().wait()
        return await send_request(link, request)


async def read_until(process: Process, *words: str) -> None:
    """Until it has printed these words in this order."""
    seen, wanted = "", list(words)
    async with asyncio.timeout(DEADLINE):
        while wanted:
            before, found, rest = seen.partition(f"{wanted[0]}\n")
            if found:
                seen = rest
                wanted.pop(0)
            else:
                data = await process.stdout.read()
                assert data, f"it ended after {seen!r}"
                seen = before + data.decode()


async def test_the_network_is_closed_before_a_computer_that_does_not_answer_is_waited_for(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = CollectingServer()
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running_previews(tmp_path_factory.mktemp("mute")) as harness:
        http, admin = harness.gateway.http, harness.gateway.token("admin", "prompt", "read")
        rule = {"verdict": "allow", "pattern": f"127.0.0.1:{port}"}
        assert (await http.post("/v1/egress/rules", json=rule, headers=admin)).status_code == 201
        command = ["/usr/bin/python3", "-I", "-c", SEND, str(port)]
        async with await harness.computer.spawn(command, apart="agent") as agent:
            await read_until(agent, "open")
            await until(lambda: sink.received)
            mute = MuteComputer(monkeypatch)
            stopping = asyncio.ensure_future(http.post("/v1/stop", json={}, headers=admin))
            # It connects again at once, and nothing of it arrives any more.
            await read_until(agent, "cut", "refused", "refused")
            await until(lambda: sink.open == 0)
            received = sink.received
            assert (await stopping).is_success
            summary = (await http.get("/v1/stop", headers=admin)).json()["summary"]
            assert "1 network connection closed." in summary
            assert "Processes of agents may still run: The computer did not answer within 1 s." in summary
            assert "The computer has no network until you lift the stop or the gateway restarts." in summary
            await read_until(agent, "refused", "refused")
            assert (sink.open, sink.received) == (0, received)
            # Lifted, the network is there again; and a stop that is answered ends the agent.
            assert (await http.post("/v1/stop/lift", headers=admin)).is_success
            await read_until(agent, "open")
            mute.is_mute = False
            assert (await http.post("/v1/stop", json={}, headers=admin)).is_success
            assert (await agent.wait()).signal == 9
            summary = (await http.get("/v1/stop", headers=admin)).json()["summary"]
            assert summary.startswith("No process of an agent runs any more (1 process killed).")
            assert not harness.gateway.services.computer_access.is_network_closed
