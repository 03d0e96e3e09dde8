"""The client of an agent in tests of skills."""

from dataclasses import dataclass

from freehold.agents.acp.json_rpc import Json, Later
from freehold.agents.acp.options import AgentOptions


@dataclass
class PermissiveClient:
    """Keeps the options of an agent, and allows every permission request once."""

    options: AgentOptions

    def updated(self, update: Json) -> None:
        self.options.apply_update(update)

    async def paused(self) -> None:
        return

    def permission(self, params: Json) -> Later:
        async def allow() -> Json:
            chosen = next(one["optionId"] for one in params["options"] if one["kind"] == "allow_once")
            return {"outcome": {"outcome": "selected", "optionId": chosen}}

        return allow
