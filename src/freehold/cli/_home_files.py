"""What commands read from the home, and what they record in it, without a running Freehold."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from freehold.home import Home, ensure_private_folder

if TYPE_CHECKING:
    from freehold.manifest import Manifest
    from freehold.timeline import Json


def read_manifest(home: Home) -> "Manifest":
    from freehold.manifest import load_manifest

    return load_manifest(home.manifest, os.environ, home=home.root).manifest


def record_act(home: Home, kind: str, data: "Mapping[str, Json]") -> None:
    """Record in the timeline what the owner did."""
    from freehold.timeline import Timeline

    ensure_private_folder(home.root)
    with Timeline(home.timeline) as timeline:
        timeline.append(kind, data, who="owner")
