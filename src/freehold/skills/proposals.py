"""Skills that agents propose: folders in the workspace that the owner can look at and adopt. Nothing there is used."""

import os
from collections.abc import Iterator
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.skills.folder import read_open_folder
from freehold.skills.lock import SkillSource
from freehold.skills.sources import MAX_SKILLS, FoundSkill

PROPOSALS = "skill-proposals"
"""The folder in the workspace."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_proposals(workspace: Path) -> tuple[list[FoundSkill], dict[str, str]]:
    """Those that can be read, and for each other folder the reason why not.

    An agent writes there while this reads: no link is followed, and what was read is what the hash names.
    """
    found: list[FoundSkill] = []
    refused: dict[str, str] = {}
    for name, descriptor in _open_folders(workspace):
        try:
            found.append(_read_proposal(name, descriptor))
        except FreeholdError as error:
            refused[name] = error.message
        except OSError as error:
            refused[name] = str(error.strerror)
    return found, refused


def _read_proposal(name: str, descriptor: int | None) -> FoundSkill:
    if descriptor is None:
        raise FreeholdError("skill.refused", "It is a link, or not a folder")
    package = read_open_folder(descriptor)
    if package.name != name:
        raise FreeholdError("skill.malformed", f"Its folder is not called {package.name}, which is its name")
    return FoundSkill(SkillSource("proposal", PROPOSALS, name), package)


def _open_folders(workspace: Path) -> Iterator[tuple[str, int | None]]:
    try:
        root = os.open(workspace, _FOLDER)
    except OSError:
        return
    try:
        proposals = os.open(PROPOSALS, _FOLDER, dir_fd=root)
    except OSError:
        return
    finally:
        os.close(root)
    try:
        with os.scandir(proposals) as scan:
            names = sorted(entry.name for entry, _ in zip(scan, range(MAX_SKILLS), strict=False))
        for name in names:
            try:
                descriptor = os.open(name, _FOLDER, dir_fd=proposals)
            except OSError:
                yield name, None
                continue
            try:
                yield name, descriptor
            finally:
                os.close(descriptor)
    finally:
        os.close(proposals)
