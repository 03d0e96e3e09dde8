"""`[mesh]`: other Freeholds and Nostr relays."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Seconds, Words

MeshMode = Literal["off", "peer", "client", "host"]
RelayReaders = Literal["neighbours", "anyone"]


class MeshRelaySection(Section):
    """The relay of this Freehold at `/relay`, so that two Freeholds need no third party."""

    enabled: bool = Field(default=False, description="Whether this Freehold is a relay.")
    readers: RelayReaders = Field(
        default="neighbours",
        description="Who may read and write: the owner's key and paired neighbours, or anyone with a key.",
    )
    owner: str | None = Field(
        default=None,
        description="The owner's own Nostr key, which may use the relay from any client.",
        examples=["npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"],
    )
    max_events: int = Field(
        default=10_000,
        ge=10,
        le=1_000_000,
        description="How many events are kept; then those of strangers go first, and the oldest of who sent most.",
    )
    max_bytes: Bytes = Field(default=64 * 1024**2, ge=1024**2, description="How much they may take together.")
    max_connections: int = Field(default=64, ge=1, le=1000, description="How many clients may be connected.")


class MeshWorkSection(Section):
    """Work that a paired neighbour may send, when it was given that. It runs in a computer of its own."""

    agent: str | None = Field(
        default=None, description="The agent that does it; the default agent if missing.", examples=["builtin"]
    )
    model: str | None = Field(default=None, description="The model that it uses.", examples=["anthropic"])
    budget: float | None = Field(
        default=None,
        gt=0,
        lt=1_000_000,
        description="A job is ended when it has cost more, in US dollars.",
        examples=[0.5],
    )
    may_ask: bool = Field(
        default=True, description="Whether you are asked what its agent asks; otherwise the answer is no."
    )
    network: bool = Field(default=False, description="Whether its agent may use the network, by your rules.")
    max_jobs: int = Field(default=2, ge=1, le=8, description="How many jobs of one neighbour may run at a time.")


class MeshSection(Section):
    """Other Freeholds and Nostr relays that this one knows."""

    mode: MeshMode = Field(
        default="off",
        description="Alone, a neighbour of others (`peer`), one that also registers with a host (`client`), or one that also "
        "keeps a table of clients (`host`).",
    )
    host: str | None = Field(
        default=None,
        max_length=300,
        description="The Freehold that a client registers with. Pair with it first.",
        examples=["https://hub.example.com"],
    )
    required: bool = Field(default=False, description="Whether Freehold is ready only while the mesh works.")
    name: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9-]{0,27}$",
        description="How neighbours see this Freehold; the name of the machine if missing.",
        examples=["home"],
    )
    heartbeat: Seconds = Field(
        default=30,
        ge=1,
        le=3600,
        description="How often a client tells its host that it lives; the shorter one of both counts.",
    )
    relays: Words = Field(
        default=(),
        max_length=20,
        description="Nostr relays that it connects to.",
        examples=[["wss://relay.example.com"]],
    )
    publish: Words = Field(
        default=(),
        max_length=50,
        description="Kinds of timeline events that neighbours are told, encrypted for each: only the kind, the time and ids.",
        examples=[["orchestrator.spawned"]],
    )
    relay: MeshRelaySection = Field(default=MeshRelaySection(), description="The relay of this Freehold.")
    work: MeshWorkSection = Field(default=MeshWorkSection(), description="Work of neighbours.")

    @property
    def enabled(self) -> bool:
        return self.mode != "off"
