"""What a tool gets: its session, the client to report to, and the call that it answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from freehold.builtin.json_rpc import AcpClient, Json
from freehold.builtin.session import BuiltinSession
from freehold.builtin.tool_call import BuiltinToolCall, Kind


@dataclass(frozen=True)
class ToolContext:
    session: BuiltinSession
    client: AcpClient
    call: str = "call"

    def for_call(self, call: str) -> "ToolContext":
        return replace(self, call=call)

    def start_call(self, title: str, kind: Kind, given: Json, paths: Sequence[str] = ()) -> BuiltinToolCall:
        session = self.session
        places = [str(session.resolve_path(path)[0]) for path in paths]
        return BuiltinToolCall(self.client, session.id, session.mode, self.call, title, kind, given, places)

    async def send_update(self, update: Json) -> None:
        await self.client.update(self.session.id, update)
