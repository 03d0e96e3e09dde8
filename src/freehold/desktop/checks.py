"""Checks of `[desktop]`."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.desktop.section import DesktopSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value

MIN_SIZE, MAX_SIZE = 320, 7680


@check("E925")
def unusable_desktop(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The desktop cannot be started: a program is no path, or its size is impossible."""
    section = manifest.section(DesktopSection)
    if not section.enabled:
        return
    for key, example in (("server", "/usr/bin/Xvnc"), ("window_manager", "/usr/bin/icewm")):
        path = PurePosixPath(getattr(section, key))
        if not path.is_absolute() or ".." in path.parts:
            yield CheckFinding(
                ("desktop", key),
                f"desktop.{key} is {show_value(str(path))}",
                f"A full path in the computer, such as {example}",
            )
    for key in ("width", "height"):
        size = getattr(section, key)
        if not MIN_SIZE <= size <= MAX_SIZE:
            yield CheckFinding(
                ("desktop", key), f"desktop.{key} is {size}", f"A number from {MIN_SIZE} to {MAX_SIZE}, such as 1280"
            )
