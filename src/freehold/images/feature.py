"""Images as a feature."""

from freehold.features import Feature

FEATURE = Feature(
    name="image",
    title="Image",
    section="freehold.images.section:ImageSection",
    checks="freehold.images.checks",
    commands={"build": "freehold.images.cli:command"},
)
