"""Slots: places for durable state beyond files, each kept here, by an external service, or not at all.

A slot is reached through `Slot.call` with a typed request, whatever implementation is behind it. `freehold.slots.host`
makes the slots of a Freehold.
"""

from freehold.slots.contract import SlotCall, SlotCaller, SlotContract, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.slot import Slot

__all__ = ["Slot", "SlotCall", "SlotCaller", "SlotContract", "SlotError", "SlotName"]
