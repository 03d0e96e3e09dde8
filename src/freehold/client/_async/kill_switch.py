"""The kill switch: `home.kill_switch`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.usage_models import KillSwitchInfo

STOP_TIMEOUT = 120.0


class AsyncKillSwitch:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def state(self) -> KillSwitchInfo:
        """Whether the kill switch is on."""
        return await self._connection.get("/v1/stop", KillSwitchInfo)

    async def stop(self, why: str = "") -> KillSwitchInfo:
        """End every agent and refuse model requests until it is lifted. Needs the scope `prompt`."""
        return await self._connection.post("/v1/stop", KillSwitchInfo, {"why": why}, timeout=STOP_TIMEOUT)

    async def lift(self) -> KillSwitchInfo:
        """Let agents work again. Needs the scope `admin`."""
        return await self._connection.post("/v1/stop/lift", KillSwitchInfo, {})
