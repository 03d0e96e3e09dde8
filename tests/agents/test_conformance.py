"""Freehold's ACP client works with an agent that uses the protocol's own SDK."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from tests.support.condition import DEADLINE

from freehold.agents.acp.json_rpc import Json, JsonRpcPeer, Later
from freehold.agents.sessions.permission_request import AskedCall
from freehold.agents.sessions.transcript import TranscriptBuilder


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
    """Collects updates as a session does, and allows every request."""

    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.asked: list[str] = []

    def notified(self, method: str, params: Json) -> None:
        assert method == "session/update"
        self.transcript.add_update(params["update"])

    async def paused(self) -> None:
        self.transcript.flush_tool_calls()

    def permission(self, method: str, params: Json) -> Later:
        assert method == "session/request_permission"
        tool = self.transcript.join_tool_call(params["toolCall"])
        assert tool is not None
        self.asked.append(str(AskedCall(tool.id, tool.whole).input.command))
        return self._yes

    async def _yes(self) -> Json:
        return {"outcome": {"outcome": "selected", "optionId": "y"}}


async def test_a_turn_with_an_agent_on_the_protocols_own_sdk() -> None:
    """initialize, new, load, prompt, ordered updates, a permission request with only the id of its tool call, an unknown method."""
    script = Path(__file__).parent / "sdk_agent.py"
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), stdin=PIPE, stdout=PIPE)
    host = Host()
    peer = JsonRpcPeer(Pipe(process), on_notification=host.notified, on_pause=host.paused, on_request=host.permission)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(peer.run())
        async with asyncio.timeout(DEADLINE):
            able = await peer.request(
                "initialize",
                {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}}},
            )
            assert able["protocolVersion"] == 1
            assert able["agentCapabilities"]["loadSession"] is True
            session = (await peer.request("session/new", {"cwd": "/workspace", "mcpServers": []}))["sessionId"]
            assert session == "sdk:/workspace"
            await peer.request("session/load", {"sessionId": session, "cwd": "/workspace", "mcpServers": []})
            blocks = [{"type": "text", "text": "hello"}]
            ended = await peer.request("session/prompt", {"sessionId": session, "prompt": blocks})
            assert ended["stopReason"] == "end_turn"
            assert process.stdin is not None
            process.stdin.close()
            await reading
            await process.wait()
    host.transcript.finish_message()
    said = [data["text"] for kind, data in host.transcript.pop_events() if kind == "message"]
    assert said == ["You said hello", " and chose y"]
    assert host.asked == ["ls"]
