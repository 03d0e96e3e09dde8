"""Code as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="code",
    title="Code",
    section="freehold.code.section:CodeSection",
    routes="freehold.code.routes:CodeRoutes",
    pages=(ControlCenterPage("/code", "Code"),),
)
