"""The exception that the browser needs: what it opens, and nothing else."""

from freehold.browser.section import BrowserSection
from freehold.manifest.exceptions import NeededFile, SecurityRelevantUse, Uses
from freehold.manifest.model import Manifest
from freehold.manifest.units import show_size

MAX_BROWSERS = 4
"""Browsers that are open at the same time."""


def _uses(manifest: Manifest) -> Uses:
    if manifest.section(BrowserSection).enabled:
        yield ("browser", "enabled"), "true"


def _adds(manifest: Manifest) -> tuple[str, ...]:
    section = manifest.section(BrowserSection)
    kept = (
        "kept-homes/ in the home, one folder for each conversation"
        if section.profile == "kept"
        else "a temporary folder"
    )
    return (
        f"Memory: {show_size(section.memory)} for each browser, {MAX_BROWSERS} at most, in computers of their own",
        f"Folder: the profile of each browser, in {kept}",
        "Ports: to 127.0.0.1, only those of servers of the same conversation and of your services",
        "Devices: none",
    )


def _needs(manifest: Manifest) -> tuple[NeededFile, ...]:
    return (
        NeededFile(
            manifest.section(BrowserSection).program,
            "apt install chromium; for a built image add it to image.packages, then freehold build",
        ),
    )


BROWSER = SecurityRelevantUse(
    "browser",
    "Chromium runs without its own sandbox, so a page that breaks it has the browser of that conversation",
    _uses,
    adds=_adds,
    needs=_needs,
    trial="freehold.browser.trial:try_browser",
)
