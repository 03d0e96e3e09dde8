"""What the owner asked for: `freehold.toml`, read once and the same for everybody."""

from freehold.manifest.loader import Loaded, load_manifest, require_manifest
from freehold.manifest.model import Manifest
from freehold.manifest.problem import Problem

__all__ = ["Loaded", "Manifest", "Problem", "load_manifest", "require_manifest"]
