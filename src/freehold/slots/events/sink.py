"""Where events are sent. A sink takes one event at a time."""

from typing import Protocol

from freehold.slots.events.cloud_event import CloudEvent


class SinkAway(Exception):
    """The sink cannot take anything now. `answered`: it was reached, and its answer says so. `wait`: seconds it asks for."""

    def __init__(self, reason: str, *, answered: bool = False, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.answered = answered
        self.wait = wait


class SinkRefused(Exception):
    """The sink does not take this event. Others may go on."""


class EventSink(Protocol):
    kind: str
    target: str
    """Where it is, without a password."""

    async def connect(self) -> None:
        """Idempotent. Raises SinkAway."""
        ...

    async def check(self) -> None:
        """Really asks whether it is there. Raises SinkAway."""
        ...

    async def send(self, event: CloudEvent) -> None:
        """Returns when the sink has the event. Raises SinkAway or SinkRefused."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...
