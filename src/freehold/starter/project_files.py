"""Putting the first project into an empty workspace, and its dev server into the manifest."""

import importlib.resources
import os
from importlib.resources.abc import Traversable
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.manifest.edit import Plain, edit_manifest, write_private
from freehold.manifest.reader import read_source
from freehold.manifest.starter import starter_manifest
from freehold.starter.kit import COMMAND, INSIDE, PORT

SERVICE = "web"


def is_new(home: Home) -> bool:
    """Whether this Freehold has never run and holds nothing yet."""
    return not home.history.exists() and _is_empty(home.workspace)


def refuse_unless_empty(home: Home) -> None:
    """A workspace that holds as much as one hidden file is its owner's."""
    if not _is_empty(home.workspace):
        raise FreeholdError(
            "starter.exists",
            f"There is something in {home.workspace} already",
            hint="The first project goes into an empty workspace only; move what is there away, or go on with it",
        )


def plant_project(home: Home) -> None:
    """Never over anything: refused unless the workspace is empty."""
    refuse_unless_empty(home)
    ensure_private_folder(home.root)
    home.workspace.mkdir(mode=0o700, exist_ok=True)
    owner = home.workspace.lstat()
    _copy(importlib.resources.files("freehold.starter") / "project", home.workspace, owner)
    _give(home.workspace / "node_modules", owner, link=f"{INSIDE}/node_modules")


def declare_service(home: Home) -> bool:
    """Name the dev server in the manifest, so that the keeper runs it; says whether it was not named yet.

    A manifest that has services already is the owner's, and left as it is.
    """
    values: dict[str, Plain] = {"command": list(COMMAND), "port": PORT}
    if not home.manifest.exists():
        ensure_private_folder(home.root)
        written: dict[tuple[str, ...], Plain] = {
            ("computer", "services", SERVICE, key): value for key, value in values.items()
        }
        write_private(home.manifest, starter_manifest(written))
        return True
    computer = read_source(home.manifest).tree.get("computer")
    if isinstance(computer, dict) and computer.get("services"):
        return False
    for key, value in values.items():
        edit_manifest(home.manifest, f"computer.services.{SERVICE}.{key}", value)
    return True


def _is_empty(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is None
    except FileNotFoundError:
        return True


def _copy(source: Traversable, target: Path, owner: os.stat_result) -> None:
    for one in source.iterdir():
        place = target / one.name
        if one.is_dir():
            place.mkdir(mode=0o755)
            _copy(one, place, owner)
            _give(place, owner)
        else:
            _give(place, owner, content=one.read_bytes())


def _give(place: Path, owner: os.stat_result, *, content: bytes | None = None, link: str | None = None) -> None:
    """To whom the workspace belongs: with root at home that is the computer's own uid."""
    if content is not None:
        with os.fdopen(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644), "wb") as file:
            file.write(content)
    elif link is not None:
        place.symlink_to(link)
    if place.lstat().st_uid != owner.st_uid:
        os.chown(place, owner.st_uid, owner.st_gid, follow_symlinks=False)
