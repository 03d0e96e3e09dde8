# made from _async/kill_switch.py by python -m tools.generate
"""The kill switch: `home.kill_switch`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.usage_models import KillSwitchInfo

STOP_TIMEOUT = 120.0


class SyncKillSwitch:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def state(self) -> KillSwitchInfo:
        """Whether the kill switch is on."""
        return self._connection.get("/v1/stop", KillSwitchInfo)

    def stop(self, why: str = "") -> KillSwitchInfo:
        """End every agent and refuse model requests until it is lifted. Needs the scope `prompt`."""
        return self._connection.post("/v1/stop", KillSwitchInfo, {"why": why}, timeout=STOP_TIMEOUT)

    def lift(self) -> KillSwitchInfo:
        """Let agents work again. Needs the scope `admin`."""
        return self._connection.post("/v1/stop/lift", KillSwitchInfo, {})
