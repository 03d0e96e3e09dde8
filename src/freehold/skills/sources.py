"""Where skills come from: a folder, an archive, a commit of a git repository, a package, or Freehold itself."""

import importlib.resources
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from freehold.computer.mounts.git_tree import ObjectReader, find_commit, list_commit
from freehold.errors import FreeholdError
from freehold.skills.folder import REPOSITORY, read_folder
from freehold.skills.lock import SkillSource, SourceKind
from freehold.skills.package import HEAD, PackageBuilder, SkillPackage
from freehold.skills.registry_package import fetch_package, is_package

SHIPPED = "shipped"
"""The source that is Freehold itself, and its folder."""
MAX_ENTRIES = 50_000
"""Entries of an archive or a commit that are looked at."""
MAX_UNPACKED = 1024**3
MAX_SKILLS = 200
"""Skills in one source."""
MAX_FOLDERS = 20_000


@dataclass(frozen=True)
class FoundSkill:
    source: SkillSource
    package: SkillPackage


def is_remote(place: str) -> bool:
    """Whether it is the address of a repository elsewhere. `skills.remote` reads those."""
    return place.startswith(("https://", "http://"))


def read_source(place: str, *, commit: str | None = None) -> list[FoundSkill]:
    """All skills of a source that needs no egress, in the order of their folders.

    Raises `skill.not-found` when there is none, `skill.refused` and `skill.too-big` for what may not come in.
    """
    if place == SHIPPED:
        return read_shipped()
    if is_package(place):
        with fetch_package(place) as (archive, name):
            return _require_some(list(read_archive(archive, partial(SkillSource, "package", name))), place)
    path = Path(place).expanduser().absolute()
    if path.is_dir():
        found = list(_read_below(path) if commit is None else read_commit(path, commit, "git", str(path)))
    elif path.is_file():
        found = list(read_archive(path, partial(SkillSource, "archive", str(path))))
    else:
        raise FreeholdError(
            "skill.not-found",
            f"There is no {place[:200]!a}",
            hint="Name a folder, a tar or zip archive, a repository, a package (npm:… or pypi:…), or shipped",
        )
    return _require_some(found, place)


def read_shipped() -> list[FoundSkill]:
    """The skills that come with Freehold."""
    with importlib.resources.as_file(importlib.resources.files("freehold.skills") / SHIPPED) as folder:
        return [
            FoundSkill(SkillSource("shipped", SHIPPED, one.source.part), one.package) for one in _read_below(folder)
        ]


def _require_some(found: list[FoundSkill], place: str) -> list[FoundSkill]:
    if not found:
        raise FreeholdError("skill.not-found", f"There is no {HEAD} in {place[:200]!a}")
    return found


def _read_below(root: Path) -> Iterator[FoundSkill]:
    for number, (folder, folders, names) in enumerate(os.walk(root)):
        if number > MAX_FOLDERS:
            raise FreeholdError(
                "skill.too-big", f"{root} has more than {MAX_FOLDERS} folders", hint="Name the skill's own"
            )
        folders[:] = sorted(one for one in folders if one not in (REPOSITORY, "node_modules"))
        if HEAD in names:
            folders.clear()  # what lies below belongs to this skill
            part = "" if folder == str(root) else os.path.relpath(folder, root)
            source = SkillSource("folder", str(root), part)
            yield FoundSkill(source, read_folder(Path(folder), without=(REPOSITORY,)))


@dataclass(frozen=True)
class _Entry:
    """One file of an archive or a commit. `open` gives a function that reads its content by parts."""

    path: str
    kind: str
    executable: bool
    open: Callable[[], AbstractContextManager[Callable[[int], bytes]]]


def _read_entries(entries: list[_Entry], source: Callable[[str], SkillSource]) -> Iterator[FoundSkill]:
    heads = sorted(one.path.removesuffix(HEAD) for one in entries if one.path.rpartition("/")[2] == HEAD)
    tops = [one for one in heads if not any(one != other and one.startswith(other) for other in heads)]
    if len(tops) > MAX_SKILLS:
        raise FreeholdError("skill.too-big", f"There are {len(tops)} skills; at most {MAX_SKILLS} can be read at once")
    for top in tops:
        builder = PackageBuilder()
        for one in entries:
            if one.path.startswith(top):
                if one.kind != "file":
                    raise FreeholdError("skill.refused", f"{one.path[:200]!a} is {one.kind}")
                with one.open() as read:
                    builder.add_file(one.path.removeprefix(top), read, executable=one.executable)
        yield FoundSkill(source(top.removesuffix("/")), builder.build())


def read_archive(path: Path, source: Callable[[str], SkillSource]) -> Iterator[FoundSkill]:
    """All skills of a tar or zip archive. `source`: by the folder of the skill in it."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                yield from _read_entries(_list_zip(packed), source)
        else:
            with tarfile.open(path) as tar:
                yield from _read_entries(_list_tar(tar), source)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise FreeholdError(
            "skill.refused", f"{path.name} is not a readable tar or zip archive: {str(error)[:200]}"
        ) from error


def _list_zip(packed: zipfile.ZipFile) -> list[_Entry]:
    found = []
    for one in packed.infolist():
        if one.is_dir():
            continue
        mode = one.external_attr >> 16
        kind = "a link" if stat.S_ISLNK(mode) else "file"
        found.append(_Entry(_clean(one.filename), kind, bool(mode & stat.S_IXUSR), partial(_open_packed, packed, one)))
    return _bound(found)


def _list_tar(tar: tarfile.TarFile) -> list[_Entry]:
    found: list[_Entry] = []
    size = 0
    for number, one in enumerate(tar):
        size += one.size
        if size > MAX_UNPACKED:
            # The size is told before the content is read: nothing of it was unpacked.
            raise FreeholdError("skill.too-big", f"It has more than {MAX_UNPACKED // 1024**3} GiB when it is unpacked")
        if number > MAX_ENTRIES:
            break
        if one.isdir():
            continue
        kind = "file" if one.isreg() else "a link" if one.issym() or one.islnk() else "a special file"
        found.append(_Entry(_clean(one.name), kind, bool(one.mode & stat.S_IXUSR), partial(_open_member, tar, one)))
    return _bound(found)


@contextmanager
def _open_packed(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[Callable[[int], bytes]]:
    with packed.open(entry) as file:
        yield file.read


@contextmanager
def _open_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Callable[[int], bytes]]:
    file = tar.extractfile(member)
    assert file is not None  # a regular file
    with file:
        yield file.read


def read_commit(repository: Path, commit: str, kind: SourceKind, place: str) -> Iterator[FoundSkill]:
    """All skills of a commit. `kind` and `place`: where the repository came from."""
    name = find_commit(repository, commit)
    kinds = {"100644": "file", "100755": "file", "120000": "a link", "160000": "another repository"}
    with ObjectReader(repository) as objects:
        entries = [
            _Entry(
                path, kinds.get(mode, "a special file"), mode == "100755", partial(_open_blob, objects, number, path)
            )
            for mode, number, path in list_commit(repository, name)
        ]
        yield from _read_entries(_bound(entries), lambda part: SkillSource(kind, place, part, name))


@contextmanager
def _open_blob(objects: ObjectReader, number: str, path: str) -> Iterator[Callable[[int], bytes]]:
    found = objects.open(number)
    if found is None:
        raise FreeholdError("skill.refused", f"The object of {path[:200]!a} is missing in the repository")
    yield found.read
    found.close()


def _clean(name: str) -> str:
    """Without the `./` with which some programs begin every name. All else is checked as it is."""
    while name.startswith("./"):
        name = name[2:]
    return name


def _bound(entries: list[_Entry]) -> list[_Entry]:
    if len(entries) > MAX_ENTRIES:
        raise FreeholdError("skill.too-big", f"It has more than {MAX_ENTRIES} entries", hint="Pack the skill by itself")
    return entries
