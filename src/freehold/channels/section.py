"""`[channels]`: what may be done through a channel. The channels themselves are added at run time."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes


class ChannelsSection(Section):
    """E-mail, Telegram, Matrix, Nostr and Web Push. None is used until you add it: `freehold channels add`."""

    enabled: bool = Field(default=True, description="Whether channels are used at all.")
    prompts: bool = Field(
        default=True, description="Whether a message of the paired owner may go to a session as a prompt."
    )
    approvals: bool = Field(
        default=False,
        description="Whether a permission request may be answered `once` through a channel, and a question of a workflow. `always` needs the page.",
    )
    inbox: str = Field(
        default="inbox",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,5}$",
        max_length=200,
        description="The folder of the workspace for attachments. They are stored, and never opened.",
    )
    max_attachment: Bytes = Field(
        default=20_000_000, ge=0, le=50_000_000, description="The largest attachment that is taken."
    )
