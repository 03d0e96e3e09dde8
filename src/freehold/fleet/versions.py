"""Which versions a node must have: those of the head."""

import sys
from collections.abc import Mapping
from functools import cache

from freehold import __version__
from freehold.fleet.ray_sandbox import find_ray_version

MAX_SHOWN = 40


@cache
def read_versions() -> dict[str, str]:
    """Of this machine. Raises `fleet.no-ray`."""
    return {
        "freehold": __version__,
        "ray": find_ray_version(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def find_skew(theirs: Mapping[str, str]) -> str:
    """What differs, in words; empty if nothing does."""
    ours = read_versions()
    different = [
        f"{name} {theirs.get(name, 'missing')[:MAX_SHOWN]} instead of {ours[name]}"
        for name in ours
        if theirs.get(name) != ours[name]
    ]
    return f"it has {', '.join(different)}" if different else ""
