"""Git as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="git",
    title="Git",
    section="freehold.git.section:GitSection",
    routes="freehold.git.routes:GitRoutes",
    pages=(ControlCenterPage("/git", "Git"),),
)
