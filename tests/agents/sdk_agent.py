"""An agent that uses the protocol's Python SDK, for the conformance test. Runs on the development machine only."""

import asyncio
from typing import Any, cast

import acp
from acp.schema import AgentCapabilities, PermissionOption, ToolCallUpdate


class SdkAgent:
    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=protocol_version, agent_capabilities=AgentCapabilities(load_session=True)
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **rest: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=f"sdk:{cwd}")

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **rest: Any
    ) -> acp.LoadSessionResponse:
        return acp.LoadSessionResponse()

    async def prompt(self, prompt: Any, session_id: str, **rest: Any) -> acp.PromptResponse:
        await self._client.session_update(session_id, acp.update_agent_message_text(f"You said {prompt[0].text}"))
        await self._client.session_update(
            session_id, acp.start_tool_call("t1", "List", kind="execute", raw_input={"command": "ls"})
        )
        options = [
            PermissionOption(option_id="y", name="Yes", kind="allow_once"),
            PermissionOption(option_id="n", name="No", kind="reject_once"),
        ]
        answer = await self._client.request_permission(
            session_id=session_id, tool_call=ToolCallUpdate(tool_call_id="t1"), options=options
        )
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        await self._client.session_update(session_id, acp.update_agent_message_text(f" and chose {chosen}"))
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **rest: Any) -> None:
        return


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast("Any", SdkAgent())))
