"""Remote mounts as a feature."""

from freehold.features import Feature

FEATURE = Feature(
    name="mounts",
    title="Remote mounts",
    section="freehold.mounts.section:MountsSection",
    program="freehold.mounts.program:plan_program",
    health="freehold.mounts.health:make_probe",
)
