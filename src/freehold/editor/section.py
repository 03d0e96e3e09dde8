"""`[editor]`: a code editor in the computer."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds


class EditorSection(Section):
    """VS Code in your browser, running in the computer as code-server. It needs `[security.exceptions.editor]`."""

    enabled: bool = Field(default=False, description="Whether there is an editor.")
    program: str = Field(
        default="/usr/bin/code-server", description="The program code-server in the system of the computer."
    )
    gallery: bool = Field(
        default=False,
        description="Whether extensions can be looked for at open-vsx.org. Your browser asks it directly, not through egress.",
    )
    idle: Seconds = Field(default=1800, description="After this time without an open page it is ended.")
