"""`[skills]`: the instructions that agents are shown."""

from pydantic import Field

from freehold.manifest.sections.base import Section


class SkillsSection(Section):
    """Skills are added with `freehold skills add`, and pinned in `skills.lock` beside the manifest."""

    enabled: bool = Field(default=True, description="Whether agents are shown the skills that are switched on.")
