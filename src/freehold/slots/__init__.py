"""Slots: places for durable state beyond files, each kept here, by an external service, or not at all.

A slot is reached through `Slot.call` with a typed request, whatever implementation is behind it. See `SlotHost`.
"""

from freehold.slots.contract import SlotCall, SlotCaller, SlotContract, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.host import SlotHost, open_slot
from freehold.slots.slot import Slot

__all__ = ["Slot", "SlotCall", "SlotCaller", "SlotContract", "SlotError", "SlotHost", "SlotName", "open_slot"]
