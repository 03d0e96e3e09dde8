"""Reads a folder as a skill, without following a link."""

import os
import stat
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.skills.package import MAX_DEPTH, MAX_FILES, PackageBuilder, SkillPackage

REPOSITORY = ".git"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1 << 20


def read_folder(folder: Path, *, without: Collection[str] = ()) -> SkillPackage:
    """All files below a folder but those in folders of the names `without`.

    Raises `skill.refused` for links and special files, and `skill.no-folder`.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FreeholdError("skill.no-folder", f"{folder} cannot be read: {error.strerror}") from None
    try:
        return read_open_folder(descriptor, without=without)
    finally:
        os.close(descriptor)


def read_open_folder(descriptor: int, *, without: Collection[str] = ()) -> SkillPackage:
    """As `read_folder`, for a folder that is open."""
    builder = PackageBuilder()
    _read_entries(descriptor, "", builder, without)
    return builder.build()


def _read_entries(folder: int, above: str, builder: PackageBuilder, without: Collection[str]) -> None:
    if above.count("/") >= MAX_DEPTH:
        raise FreeholdError("skill.refused", f"{above[:200]!a} is too deep")
    with os.scandir(folder) as scan:
        names = sorted(entry.name for entry in islice(scan, MAX_FILES + 1))
    builder.count_entries(len(names))
    for name in names:
        path = f"{above}{name}"
        try:
            descriptor = os.open(name, _FLAGS, dir_fd=folder)
        except OSError:
            raise FreeholdError("skill.refused", f"{path[:200]!a} is a link, or cannot be read") from None
        try:
            _read_entry(descriptor, path, builder, without)
        finally:
            os.close(descriptor)


def _read_entry(descriptor: int, path: str, builder: PackageBuilder, without: Collection[str]) -> None:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        if path.rpartition("/")[2] not in without:
            _read_entries(descriptor, f"{path}/", builder, without)
    elif stat.S_ISREG(mode):
        builder.add_file(
            path, lambda most: os.read(descriptor, min(most, _BLOCK)), executable=bool(mode & stat.S_IXUSR)
        )
    else:
        raise FreeholdError("skill.refused", f"{path[:200]!a} is a special file")
