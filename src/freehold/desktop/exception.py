"""The exception that a desktop needs: what it opens, and nothing else."""

from freehold.desktop.section import DesktopSection
from freehold.manifest.exceptions import NeededFile, SecurityRelevantUse, Uses
from freehold.manifest.model import Manifest

RFB_PORT = 5901
DISPLAY = ":1"
INPUT_PROGRAM = "/usr/bin/xdotool"
PICTURE_PROGRAM = "/usr/bin/maim"
_INSTALL = "apt install {}; for a built image add it to image.packages, then freehold build"


def _uses(manifest: Manifest) -> Uses:
    if manifest.section(DesktopSection).enabled:
        yield ("desktop", "enabled"), "true"


def _adds(manifest: Manifest) -> tuple[str, ...]:
    clipboard = manifest.section(DesktopSection).clipboard
    return (
        f"Ports: 127.0.0.1:{RFB_PORT} in the computer, for the picture. Nothing outside listens",
        "Folders: /tmp/.X11-unix in the computer, for the display",
        f"Clipboard: {'not shared' if clipboard == 'off' else f'shared with your browser ({clipboard})'}",
        "Memory: its programs count for the limit of the computer",
        "Devices: none",
    )


def _needs(manifest: Manifest) -> tuple[NeededFile, ...]:
    section = manifest.section(DesktopSection)
    return (
        NeededFile(section.server, _INSTALL.format("tigervnc-standalone-server")),
        NeededFile(section.window_manager, _INSTALL.format("icewm")),
        NeededFile(INPUT_PROGRAM, _INSTALL.format("xdotool")),
        NeededFile(PICTURE_PROGRAM, _INSTALL.format("maim")),
    )


DESKTOP = SecurityRelevantUse(
    "desktop",
    "every program in the computer can see and control the desktop, and so what you type there",
    _uses,
    adds=_adds,
    needs=_needs,
    trial="freehold.desktop.trial:try_desktop",
)
