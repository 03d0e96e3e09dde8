"""`freehold.toml`: what the owner configured, read in one way by every process.

Nothing is imported until it is used: features import their section's base class from here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.manifest.loader import LoadedManifest, load_manifest, require_manifest
    from freehold.manifest.model import Manifest
    from freehold.manifest.problem import ManifestProblem

__all__ = ["LoadedManifest", "Manifest", "ManifestProblem", "load_manifest", "require_manifest"]

_MODULES = {
    "LoadedManifest": "loader",
    "Manifest": "model",
    "ManifestProblem": "problem",
    "load_manifest": "loader",
    "require_manifest": "loader",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
