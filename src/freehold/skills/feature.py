"""Skills as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="skills",
    title="Skills",
    section="freehold.skills.section:SkillsSection",
    routes="freehold.skills.routes:SkillRoutes",
    commands={"skills": "freehold.skills.cli:command"},
    topic=CommandTopic.AGENTS,
    pages=(ControlCenterPage("/skills", "Skills"),),
)
