"""Creates the first project in an empty workspace, and adds its dev server to the manifest."""

import importlib.resources
import os
from importlib.resources.abc import Traversable
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.manifest.edit import Plain, edit_manifest, write_private
from freehold.manifest.reader import read_source
from freehold.manifest.template import starter_manifest
from freehold.starter.packages import COMMAND, INSIDE, PORT

SERVICE = "web"


def is_new_home(home: Home) -> bool:
    """Whether this Freehold has never run and its workspace is empty."""
    return not home.history.exists() and _is_empty(home.workspace)


def refuse_unless_empty(home: Home) -> None:
    """Raises `starter.exists` unless the workspace is empty. A hidden file counts too."""
    if not _is_empty(home.workspace):
        raise FreeholdError(
            "starter.exists",
            f"{home.workspace} is not empty",
            hint="The first project needs an empty workspace. Move the files away, or continue with them",
        )


def create_project(home: Home) -> None:
    """Raises `starter.exists` unless the workspace is empty: nothing is overwritten."""
    refuse_unless_empty(home)
    ensure_private_folder(home.root)
    home.workspace.mkdir(mode=0o700, exist_ok=True)
    owner = home.workspace.lstat()
    _copy(importlib.resources.files("freehold.starter") / "project", home.workspace, owner)
    _create_owned(home.workspace / "node_modules", owner, link=f"{INSIDE}/node_modules")


def declare_service(home: Home) -> bool:
    """Adds the dev server to the manifest, so that the keeper runs it. Returns whether the manifest changed.

    A manifest that has services already is not changed.
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
            _create_owned(place, owner)
        else:
            _create_owned(place, owner, content=one.read_bytes())


def _create_owned(place: Path, owner: os.stat_result, *, content: bytes | None = None, link: str | None = None) -> None:
    """Creates a file or a link with the owner of the workspace. If root runs Freehold, that is the computer's uid."""
    if content is not None:
        with os.fdopen(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644), "wb") as file:
            file.write(content)
    elif link is not None:
        place.symlink_to(link)
    if place.lstat().st_uid != owner.st_uid:
        os.chown(place, owner.st_uid, owner.st_gid, follow_symlinks=False)
