"""What is kept and who else is there: `[history]`, `[ssh]`, `[slots]`, `[mesh]`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Moments, Port, Seconds, Words


class HistorySection(Section):
    """Every state of the persistent folders."""

    folders: Words = Field(default=("workspace", "home"), description="The persistent folders that are covered.")
    ignore: Words = Field(
        default=(),
        description="Patterns of paths that are not kept, as in a .gitignore, beside agents' own state; what is ignored cannot be undone.",
        examples=[["*.iso", "workspace/.cache/"]],
    )
    quota: Bytes | None = Field(
        default=None,
        description="Disk that history may use; 5GiB or a tenth of the disk, whichever is less, when not said.",
        examples=["20GiB"],
    )
    quiet: Moments = Field(
        default=2.0, description="A snapshot is taken after this long without writes, when something changed."
    )


class Ssh(Section):
    """The side door."""

    enabled: bool = Field(default=True, description="Whether there is an SSH server.")
    host: str = Field(default="127.0.0.1", description="The address it listens on.", examples=["::1"])
    port: Port = Field(default=2222, description="The port it listens on.")
    lifetime: Seconds = Field(default=86400, description="How long a certificate is valid; 24h at most.")
    forwarding: bool = Field(
        default=True, description="Whether ports and sockets inside the computer may be forwarded, and never others."
    )


SlotMode = Literal["local", "external", "off"]


class Slot(Section):
    """One place for durable state. `beads = "local"` is short for `beads.mode = "local"`."""

    mode: SlotMode = Field(default="off", description="Kept here, kept by a service elsewhere, or not at all.")
    required: bool = Field(default=False, description="Whether Freehold is not ready while this one is unwell.")
    settings: Mapping[str, str] = Field(
        default={},
        description="What the external service needs, such as its url; keys as `env:NAME` or `secret:name`.",
        examples=[{"url": "https://beads.example.com"}],
    )


def _mode_alone(value: object) -> object:
    return {"mode": value} if isinstance(value, str) else value


AnySlot = Annotated[Slot, BeforeValidator(_mode_alone, json_schema_input_type=Slot | SlotMode)]


class Slots(Section):
    """The five places for durable state, each "local", "external" or "off"; a table, `[slots.beads]`, says more."""

    beads: AnySlot = Field(default=Slot(), description="Work items.")
    pods: AnySlot = Field(default=Slot(), description="Personal data.")
    memory: AnySlot = Field(default=Slot(), description="What agents remember.")
    events: AnySlot = Field(default=Slot(), description="Events for others to read.")
    orchestrator: AnySlot = Field(default=Slot(), description="Who runs several agents.")


class Mesh(Section):
    """The neighbours: other Freeholds and Nostr relays."""

    mode: Literal["off", "client", "host"] = Field(
        default="off", description="Alone, a client of another Freehold, or one that others connect to."
    )
    host: str | None = Field(
        default=None, description="The Freehold that a client connects to.", examples=["https://hub.example.com"]
    )
    relays: Words = Field(default=(), description="Nostr relays to use.", examples=[["wss://relay.example.com"]])
