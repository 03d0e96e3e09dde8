"""`[browser]`: Chromium for agents."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Seconds


class BrowserSection(Section):
    """Chromium for agents, in a computer of its own for each session. It needs `[security.exceptions.browser]`."""

    enabled: bool = Field(default=False, description="Whether agents have a browser.")
    program: str = Field(
        default="/usr/lib/chromium/chromium",
        description="Chromium in the system of the computer: the program itself, not a script that starts it.",
    )
    profile: Literal["session", "kept"] = Field(
        default="session",
        description="Whether cookies and sign-ins end with the browser, or are kept for the next browser of the same conversation.",
    )
    ask: bool = Field(
        default=True,
        description="Whether you are asked before an agent opens or uses a site. The rules of egress apply in any case.",
    )
    memory: Bytes = Field(default=2 * 1024**3, description="Memory that each browser may use.")
    idle: Seconds = Field(default=600, description="After this time without use a browser is closed.")
