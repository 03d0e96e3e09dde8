"""Checks of `[browser]`."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.browser.section import BrowserSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value

MIN_MEMORY = 512 * 1024**2


@check("E923")
def unusable_browser(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The browser for agents cannot be started: its program is no path, its memory is too small, or the backend has no further computers."""
    section = manifest.section(BrowserSection)
    if not section.enabled:
        return
    path = PurePosixPath(section.program)
    if not path.is_absolute() or ".." in path.parts:
        yield CheckFinding(
            ("browser", "program"),
            f"browser.program is {show_value(section.program)}",
            "A full path in the computer, such as /usr/lib/chromium/chromium",
        )
    if section.memory < MIN_MEMORY:
        yield CheckFinding(
            ("browser", "memory"), "browser.memory is less than 512 MiB, and Chromium needs that", 'memory = "2GiB"'
        )
    if manifest.computer.backend == "attached":
        yield CheckFinding(
            ("browser", "enabled"),
            'A browser has a computer of its own, and with computer.backend = "attached" Freehold starts none',
            "Use another backend, or browser.enabled = false",
        )
