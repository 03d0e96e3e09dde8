"""The features of this Freehold: each declares itself in its own folder, and the house collects the declarations."""

from freehold.features.declaration import ControlCenterPage, Feature, FeatureProgram, FeatureService
from freehold.features.registry import find_feature, list_features, load_reference

__all__ = [
    "ControlCenterPage",
    "Feature",
    "FeatureProgram",
    "FeatureService",
    "find_feature",
    "list_features",
    "load_reference",
]
