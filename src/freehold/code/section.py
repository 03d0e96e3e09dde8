"""`[code]`: code that runs in isolates."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds


class CodeSection(Section):
    """Code in isolates, by the page and the API."""

    keep_contexts: Seconds = Field(
        default=3600, gt=0, description="How long a context stays that nobody uses. Its variables go with it."
    )
