"""`[mounts]`: remote mounts."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Seconds


class MountsSection(Section):
    """Remote mounts. Each one is a `[[computer.mounts]]` of kind s3, webdav, solid or rclone."""

    timeout: Seconds = Field(
        default=60,
        ge=3,
        le=3600,
        description="How long a program in the computer waits for one answer of a server. Then it gets an error.",
    )
    cache: Bytes = Field(
        default=2 * 1024**3,
        ge=1024**2,
        description="Disk of this machine that changes of one mount may take until they are sent. Then the disk is full for the computer.",
    )
