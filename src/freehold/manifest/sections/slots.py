"""`[slots]`: five places for durable state beyond files."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from freehold.manifest.sections.base import Section

SlotMode = Literal["local", "external", "off"]
PrivacyMode = Literal["strict", "soft", "off"]


class SlotSection(Section):
    """One place for durable state. `beads = "local"` is short for `beads.mode = "local"`."""

    mode: SlotMode = Field(default="off", description="Stored here, stored by an external service, or not used.")
    required: bool = Field(default=False, description="Whether Freehold is ready only while this slot works.")
    privacy: PrivacyMode = Field(
        default="off",
        description="What happens to secrets and personal data: refused, replaced by pseudonyms that only the owner "
        "sees through, or nothing.",
    )
    settings: Mapping[str, str] = Field(
        default={},
        description="What the external service needs, such as its url; keys as `env:NAME` or `secret:name`.",
        examples=[{"url": "https://beads.example.com"}],
    )


def _mode_alone(value: object) -> object:
    return {"mode": value} if isinstance(value, str) else value


AnySlot = Annotated[SlotSection, BeforeValidator(_mode_alone, json_schema_input_type=SlotSection | SlotMode)]


class SlotsSection(Section):
    """The five places for durable state, each "local", "external" or "off"; a table, `[slots.beads]`, says more."""

    beads: AnySlot = Field(default=SlotSection(), description="Work items.")
    pods: AnySlot = Field(default=SlotSection(), description="Personal data.")
    memory: AnySlot = Field(default=SlotSection(), description="What agents remember.")
    events: AnySlot = Field(default=SlotSection(), description="Events for others to read.")
    orchestrator: AnySlot = Field(default=SlotSection(), description="Who runs several agents.")
