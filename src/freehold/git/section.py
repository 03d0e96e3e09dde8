"""`[git]`: who commits."""

from pydantic import Field

from freehold.manifest.sections.base import Section


class GitSection(Section):
    """Commits that you make in the page. What a repository itself says about its author counts first."""

    name: str = Field(default="", max_length=200, description="The author's name; empty for your handle.")
    email: str = Field(
        default="", max_length=200, description="The author's address; empty for owner@freehold.localhost."
    )
