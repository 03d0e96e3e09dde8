"""The list of features, and the way from a reference to the object it names."""

from functools import cache
from importlib import import_module
from typing import Any

from freehold.errors import FreeholdError
from freehold.features.declaration import Feature

DECLARATIONS = (
    "freehold.backup.feature:FEATURE",
    "freehold.browser.feature:FEATURE",
    "freehold.channels.feature:FEATURE",
    "freehold.code.feature:FEATURE",
    "freehold.credentials.feature:FEATURE",
    "freehold.deploy.feature:FEATURE",
    "freehold.desktop.feature:FEATURE",
    "freehold.editor.feature:FEATURE",
    "freehold.fleet.feature:FEATURE",
    "freehold.git.feature:FEATURE",
    "freehold.gpu.feature:FEATURE",
    "freehold.images.feature:FEATURE",
    "freehold.mesh.feature:FEATURE",
    "freehold.mcp.feature:FEATURE",
    "freehold.mounts.feature:FEATURE",
    "freehold.routines.workflows.feature:FEATURE",
    "freehold.routines.feature:FEATURE",
    "freehold.skills.feature:FEATURE",
    "freehold.ssh.feature:FEATURE",
)
"""One line for each feature."""


@cache
def list_features() -> tuple[Feature, ...]:
    """All features, in the order of `DECLARATIONS`."""
    features = tuple(load_reference(reference) for reference in DECLARATIONS)
    names = [feature.name for feature in features]
    verbs = [verb for feature in features for verb in feature.commands]
    for taken in (names, verbs):
        if len(set(taken)) != len(taken):
            raise FreeholdError("feature.exists", f"Two features declare the same name: {', '.join(sorted(taken))}")
    return features


def find_feature(name: str) -> Feature:
    for feature in list_features():
        if feature.name == name:
            return feature
    known = ", ".join(feature.name for feature in list_features())
    raise FeatureNotFound(name, known)


class FeatureNotFound(FreeholdError):
    def __init__(self, name: str, known: str) -> None:
        super().__init__("feature.not-found", f"There is no feature {name!r}", hint=f"The features are: {known}")


def load_reference(reference: str) -> Any:
    """Import what `"package.module:name"` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
