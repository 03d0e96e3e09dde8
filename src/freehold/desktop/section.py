"""`[desktop]`: a graphical desktop in the computer."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds

Clipboard = Literal["off", "to-desktop", "from-desktop", "both"]


class DesktopSection(Section):
    """A desktop with windows in the computer, for you and for agents. It needs `[security.exceptions.desktop]`."""

    enabled: bool = Field(default=False, description="Whether there is a desktop.")
    server: str = Field(default="/usr/bin/Xvnc", description="TigerVNC's X server in the system of the computer.")
    window_manager: str = Field(
        default="/usr/bin/icewm", description="The window manager in the system of the computer, without arguments."
    )
    width: int = Field(default=1280, description="The width in pixels at its start. Your page resizes it.")
    height: int = Field(default=800, description="The height in pixels at its start.")
    clipboard: Clipboard = Field(
        default="off",
        description="Whether text that you copy goes to the desktop, and text that is copied there to your clipboard.",
    )
    idle: Seconds = Field(default=1800, description="After this time without a viewer or an agent it is ended.")

    @property
    def accepts_clipboard(self) -> bool:
        """Whether text that the owner copies goes to the desktop."""
        return self.clipboard in ("to-desktop", "both")

    @property
    def sends_clipboard(self) -> bool:
        """Whether text that is copied on the desktop goes to the owner's clipboard."""
        return self.clipboard in ("from-desktop", "both")
