"""`[mesh]`: other Freeholds and Nostr relays."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Words


class MeshSection(Section):
    """Other Freeholds and Nostr relays."""

    mode: Literal["off", "client", "host"] = Field(
        default="off", description="Alone, a client of another Freehold, or one that others connect to."
    )
    host: str | None = Field(
        default=None, description="The Freehold that a client connects to.", examples=["https://hub.example.com"]
    )
    relays: Words = Field(default=(), description="Nostr relays to use.", examples=[["wss://relay.example.com"]])
