"""Checks of `[gpu]`."""

from collections.abc import Iterator

from freehold.gpu.section import GpuSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value

MAX_CARDS = 64


@check("E924")
def unusable_gpu(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The GPU cannot be used: its cards are not the numbers of cards, or the backend has no devices."""
    section = manifest.section(GpuSection)
    if not section.enabled:
        return
    wrong = [card for card in section.cards if not 0 <= card < MAX_CARDS]
    if wrong or not section.cards or len(set(section.cards)) != len(section.cards):
        yield CheckFinding(
            ("gpu", "cards"), f"gpu.cards is {show_value(list(section.cards))}", "Each card once, such as [0]"
        )
    if manifest.computer.backend != "bubblewrap":
        yield CheckFinding(
            ("gpu", "enabled"),
            f"With computer.backend = {show_value(manifest.computer.backend)} a computer has no devices of this machine",
            'computer.backend = "bubblewrap"',
        )
