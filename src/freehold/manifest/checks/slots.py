"""Checks of `[slots]`."""

import re
from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key
from freehold.manifest.sections.slots import SlotSection

BUILT = frozenset({"beads", "pods", "memory", "events", "orchestrator"})
"""The slots that this version has."""
KEPT_BY_NEIGHBOURS = frozenset({"beads", "orchestrator"})
"""The slots that another Freehold can keep."""
_HERE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:|/|$)")
"""What follows `http://` in an address of this machine."""


def _slots(manifest: Manifest) -> Iterator[tuple[str, SlotSection]]:
    for name in type(manifest.slots).model_fields:
        yield name, getattr(manifest.slots, name)


@check("E711")
def external_slot_without_settings(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A slot is kept elsewhere, and nothing says where."""
    for name, slot in _slots(manifest):
        if slot.mode == "external" and not slot.settings:
            key: KeyPath = ("slots", name)
            yield CheckFinding(
                key,
                f"[{show_key(key)}] is external and has no settings",
                f'[slots.{name}.settings] with url = "https://…"',
            )


@check("E712")
def required_slot_is_off(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A slot is required and switched off, so Freehold would never be ready."""
    for name, slot in _slots(manifest):
        if slot.required and slot.mode == "off":
            yield CheckFinding(
                ("slots", name, "required"),
                f"slots.{name} is required and off",
                'mode = "local", or leave required out',
            )


@check("W713")
def settings_of_a_slot_that_is_off(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A slot has settings and is switched off."""
    for name, slot in _slots(manifest):
        if slot.settings and slot.mode == "off":
            yield CheckFinding(
                ("slots", name, "settings"), f"slots.{name} has settings and is off", 'mode = "external" to use them'
            )


@check("W714")
def neighbour_that_cannot_be_used(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A slot is kept by another Freehold, without a token of it or without encryption, so it cannot be reached."""
    for name, slot in _slots(manifest):
        scheme, _, rest = slot.settings.get("url", "").partition("://")
        if slot.mode != "external" or name not in KEPT_BY_NEIGHBOURS or scheme.lower() not in ("http", "https"):
            continue
        settings: KeyPath = ("slots", name, "settings")
        if "token" not in slot.settings:
            yield CheckFinding(
                settings,
                f"slots.{name} is kept by another Freehold, and no token for it is given",
                f'token = "secret:NAME", made there with: freehold token create NAME --scope {name}',
            )
        if scheme.lower() == "http" and _HERE.match(rest) is None:
            yield CheckFinding(
                (*settings, "url"),
                f"slots.{name} is kept by another Freehold, and the connection to it is not encrypted",
                "Use https beyond this machine",
            )
