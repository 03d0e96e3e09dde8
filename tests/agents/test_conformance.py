"""Our layer of ACP and the protocol's own SDK understand each other."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from freehold.agents.approvals import question_of
from freehold.agents.board import Board
from freehold.agents.rpc import Json, Later, Peer


class Pipe:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    async def read(self) -> bytes:
        return await self._stdout.read(65536)

    async def write(self, data: bytes) -> None:
        self._stdin.write(data)
        await self._stdin.drain()


class Host:
    """Gathers as a session does, and says yes."""

    def __init__(self) -> None:
        self.board = Board()
        self.asked: list[str] = []

    def notified(self, method: str, params: Json) -> None:
        assert method == "session/update"
        self.board.take(params["update"])

    async def paused(self) -> None:
        self.board.pause()

    def permission(self, method: str, params: Json) -> Later:
        assert method == "session/request_permission"
        tool = self.board.join(params["toolCall"])
        assert tool is not None
        self.asked.append(question_of(tool).details["command"])
        return self._yes

    async def _yes(self) -> Json:
        return {"outcome": {"outcome": "selected", "optionId": "y"}}


async def test_a_turn_with_an_agent_on_the_protocols_own_sdk() -> None:
    """initialize, new, load, prompt, ordered updates, a question that names only its call, an unknown method."""
    script = Path(__file__).parent / "sdk_agent.py"
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), stdin=PIPE, stdout=PIPE)
    host = Host()
    peer = Peer(Pipe(process), notified=host.notified, paused=host.paused, asked=host.permission)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(peer.run())
        async with asyncio.timeout(30):
            able = await peer.request(
                "initialize",
                {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}}},
            )
            assert able["protocolVersion"] == 1
            assert able["agentCapabilities"]["loadSession"] is True
            session = (await peer.request("session/new", {"cwd": "/workspace", "mcpServers": []}))["sessionId"]
            assert session == "sdk:/workspace"
            await peer.request("session/load", {"sessionId": session, "cwd": "/workspace", "mcpServers": []})
            words = [{"type": "text", "text": "hello"}]
            ended = await peer.request("session/prompt", {"sessionId": session, "prompt": words})
            assert ended["stopReason"] == "end_turn"
            assert process.stdin is not None
            process.stdin.close()
            await reading
            await process.wait()
    host.board.finish()
    said = [data["text"] for kind, data in host.board.take_events() if kind == "message"]
    assert said == ["You said hello", " and chose y"]
    assert host.asked == ["ls"]
