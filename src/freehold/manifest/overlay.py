"""`freehold.overlay.toml`: changes of a manifest that cannot be written itself.

A manifest may be a read-only mount, a link into a package store, or the output of another program. What the owner
changes in the page or on the command line is then kept in a file beside it, and wins over it.
"""

from collections.abc import Mapping
from pathlib import Path

from freehold.manifest.problem import ManifestProblem, show_path
from freehold.manifest.reader import ManifestSource, read_source

OVERLAY_NAME = "freehold.overlay.toml"
LIVE_SECTIONS = ("models", "budget", "agents", "egress")
"""The sections that follow the files while Freehold runs, and the only ones that an overlay may have."""


def overlay_path(manifest: Path) -> Path:
    """Beside the manifest by its own name: a link is not followed."""
    return manifest.with_name(OVERLAY_NAME)


def read_overlay(manifest: Path) -> ManifestSource:
    """The overlay of a manifest. A section that it may not have is a problem, and is left out."""
    source = read_source(overlay_path(manifest))
    kept = {name: value for name, value in source.tree.items() if name in LIVE_SECTIONS}
    problems = [
        ManifestProblem(
            "E010",
            f"{show_path(source.path)} has [{name}], and an overlay changes only {', '.join(LIVE_SECTIONS)}",
            f"Move it to {show_path(manifest)}",
            show_path(source.path),
            source.line((name,)),
            name,
        )
        for name in source.tree
        if name not in LIVE_SECTIONS
    ]
    return ManifestSource(source.path, kept, source.text, (*source.problems, *problems))


def merge_overlay(tree: Mapping[str, object], overlay: Mapping[str, object]) -> dict[str, object]:
    """The tree with the values of the overlay. Tables are merged, everything else is replaced."""
    merged = dict(tree)
    for name, value in overlay.items():
        below = merged.get(name)
        merged[name] = merge_overlay(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
