"""The features of this Freehold: each declares itself in its own folder, and the house collects the declarations."""

from freehold.features.declaration import (
    CommandTopic,
    ControlCenterPage,
    Feature,
    FeatureProgram,
    FeatureService,
    WorkSigns,
)
from freehold.features.registry import find_feature, list_features, load_reference

__all__ = [
    "CommandTopic",
    "ControlCenterPage",
    "Feature",
    "FeatureProgram",
    "FeatureService",
    "WorkSigns",
    "find_feature",
    "list_features",
    "load_reference",
]
