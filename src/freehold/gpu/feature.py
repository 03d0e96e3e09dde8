"""The GPU as a feature."""

from freehold.features import Feature

FEATURE = Feature(
    name="gpu",
    title="GPU",
    section="freehold.gpu.section:GpuSection",
    checks="freehold.gpu.checks",
    exceptions=("freehold.gpu.exception:GPU",),
)
