"""A slot that is switched off: every call says so, and how to switch it on."""

from typing import NoReturn

from freehold.slots.contract import Reply, SlotCall, SlotCaller, SlotName
from freehold.slots.errors import SlotError


class OffSlot:
    kind = "off"
    records_events = False

    def __init__(self, name: SlotName) -> None:
        self._name = name

    async def connect(self) -> None:
        """Nothing to connect to."""

    async def health(self) -> NoReturn:
        raise self._disabled()

    async def close(self) -> None:
        """Nothing was opened."""

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        raise self._disabled()

    def _disabled(self) -> SlotError:
        return SlotError(
            self._name,
            "disabled",
            f"The {self._name} slot is off",
            hint=f'Set slots.{self._name} = "local" in freehold.toml and restart Freehold',
        )
