"""Refuses paths and names of images that an engine, or systemd, would read as something else than they are.

`source:target:options` is one text for docker and podman, and a unit is read line by line.
"""

import re
from collections.abc import Iterator

from freehold.deploy.deployment import Deployment
from freehold.errors import FreeholdError

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_UNIT_CHARACTERS = frozenset("%$\"'\\;")


def check_images(deployment: Deployment) -> None:
    """Raises `deploy.odd-image`."""
    for image in (deployment.brain_image, deployment.computer_image):
        if not _IMAGE.fullmatch(image):
            raise FreeholdError(
                "deploy.odd-image",
                f"{image[:200]!r} is not the name of an image",
                hint="Write it like registry.example.com/freehold:1",
            )


def check_container_paths(deployment: Deployment) -> None:
    """Raises `deploy.odd-path`."""
    for path in _list_paths(deployment):
        if ":" in path or not path.isprintable():
            raise _refuse(path, "colons and control characters")


def check_unit_paths(deployment: Deployment, folder: str) -> None:
    """As `check_container_paths`, for units in `folder`."""
    for path in (folder, *_list_paths(deployment)):
        odd = (one.isspace() or one in _UNIT_CHARACTERS or not one.isprintable() for one in path)
        if ":" in path or any(odd):
            raise _refuse(path, "spaces, quotes, colons, % and $")


def _refuse(path: str, characters: str) -> FreeholdError:
    return FreeholdError(
        "deploy.odd-path",
        f"The path {path[:200]!r} cannot be used in this file: it would be read as something else",
        hint=f"Use a path without {characters}",
    )


def _list_paths(deployment: Deployment) -> Iterator[str]:
    for use in (*deployment.brain_volumes, *deployment.computer_volumes):
        yield from (use.source, use.target)
    for folder in (*deployment.brain_memory_folders, *deployment.computer_memory_folders):
        yield folder.target
