"""Where skills come from: a folder, an archive, a commit of a git repository, a package, or Freehold itself."""

import importlib.resources
import os
import re
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
from freehold.skills.bounded_archive import BROKEN, open_tar, open_zip
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
MAX_REASONS = 10
"""Refused folders that one error names."""
REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
"""The name of a branch or a tag."""

Refused = dict[str, FreeholdError]
"""By its folder in the source: why it cannot be read as a skill."""


@dataclass(frozen=True)
class FoundSkill:
    source: SkillSource
    package: SkillPackage


def is_remote(place: str) -> bool:
    """Whether it is the address of a repository elsewhere. `skills.remote` reads those."""
    return place.startswith(("https://", "http://"))


def read_source(place: str, *, commit: str | None = None, refused: Refused | None = None) -> list[FoundSkill]:
    """All skills of a source that needs no egress, in the order of their folders.

    Raises `skill.not-found` when there is none, `skill.refused` and `skill.too-big` for what may not come in. With
    `refused` a folder that may not come in is collected there, and does not keep out the others.
    """
    if place == SHIPPED:
        return read_shipped()
    return require_some(_read_place(place, commit, refused), refused, f"{place[:200]!a}")


def _read_place(place: str, commit: str | None, refused: Refused | None) -> list[FoundSkill]:
    if is_package(place):
        with fetch_package(place) as (archive, name):
            return list(read_archive(archive, partial(SkillSource, "package", name), refused))
    path = Path(place).expanduser().absolute()
    if path.is_dir():
        if commit is None:
            return list(_read_below(path, refused))
        return list(read_commit(path, commit, "git", str(path), refused))
    if path.is_file():
        return list(read_archive(path, partial(SkillSource, "archive", str(path)), refused))
    raise FreeholdError(
        "skill.not-found",
        f"There is no {place[:200]!a}",
        hint="Name a folder, a tar or zip archive, a repository, a package (npm:… or pypi:…), or shipped",
    )


def read_shipped() -> list[FoundSkill]:
    """The skills that come with Freehold."""
    with importlib.resources.as_file(importlib.resources.files("freehold.skills") / SHIPPED) as folder:
        return [
            FoundSkill(SkillSource("shipped", SHIPPED, one.source.part), one.package) for one in _read_below(folder)
        ]


def require_some(found: list[FoundSkill], refused: Refused | None, place: str) -> list[FoundSkill]:
    """Raises `skill.not-found`, or why the folders are refused, when nothing was found."""
    if found:
        return found
    if not refused:
        raise FreeholdError("skill.not-found", f"There is no {HEAD} in {place}")
    if len(refused) == 1:
        raise next(iter(refused.values()))
    reasons = list(reasons_of(refused).items())[:MAX_REASONS]
    why = "; ".join(f"{folder[:80]!a}: {words}" for folder, words in reasons)
    raise FreeholdError("skill.refused", f"None of the {len(refused)} skills in {place} can be read: {why}")


def reasons_of(refused: Refused) -> dict[str, str]:
    return {folder: error.message for folder, error in refused.items()}


@contextmanager
def _collect(refused: Refused | None, folder: str) -> Iterator[None]:
    """Puts the error of a folder into `refused`. Without that it is raised."""
    try:
        yield
    except FreeholdError as error:
        if refused is None:
            raise
        refused[folder] = error


def _find_skill(source: SkillSource, package: SkillPackage) -> FoundSkill:
    """Raises `skill.malformed`: the head is read here, while it is known which folder it is of."""
    _ = package.front_matter
    return FoundSkill(source, package)


def _read_below(root: Path, refused: Refused | None = None) -> Iterator[FoundSkill]:
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
            with _collect(refused, part):
                yield _find_skill(source, read_folder(Path(folder), without=(REPOSITORY,)))


@dataclass(frozen=True)
class _Entry:
    """One file of an archive or a commit. `open` gives a function that reads its content by parts."""

    path: str
    kind: str
    executable: bool
    open: Callable[[], AbstractContextManager[Callable[[int], bytes]]]


def _read_entries(
    entries: list[_Entry], source: Callable[[str], SkillSource], refused: Refused | None
) -> Iterator[FoundSkill]:
    heads = sorted(one.path.removesuffix(HEAD) for one in entries if one.path.rpartition("/")[2] == HEAD)
    tops = [one for one in heads if not any(one != other and one.startswith(other) for other in heads)]
    if len(tops) > MAX_SKILLS:
        raise FreeholdError("skill.too-big", f"There are {len(tops)} skills; at most {MAX_SKILLS} can be read at once")
    for top in tops:
        folder = top.removesuffix("/")
        with _collect(refused, folder):
            yield _find_skill(source(folder), _build_package(entries, top))


def _build_package(entries: list[_Entry], top: str) -> SkillPackage:
    builder = PackageBuilder()
    for one in entries:
        if one.path.startswith(top):
            if one.kind != "file":
                raise FreeholdError("skill.refused", f"{one.path[:200]!a} is {one.kind}")
            with one.open() as read:
                builder.add_file(one.path.removeprefix(top), read, executable=one.executable)
    return builder.build()


def read_archive(
    path: Path, source: Callable[[str], SkillSource], refused: Refused | None = None
) -> Iterator[FoundSkill]:
    """All skills of a tar or zip archive. `source`: by the folder of the skill in it."""
    try:
        if zipfile.is_zipfile(path):
            with open_zip(path) as packed:
                yield from _read_entries(_list_zip(packed), source, refused)
        else:
            with open_tar(path) as (tar, reader):
                entries = _list_tar(tar)
                reader.lift()
                yield from _read_entries(entries, source, refused)
    except BROKEN as error:
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
        one.pax_headers = {}  # what was said of all files, once for each
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


def read_commit(
    repository: Path,
    commit: str,
    kind: SourceKind,
    place: str,
    refused: Refused | None = None,
    *,
    asked: str | None = None,
) -> Iterator[FoundSkill]:
    """All skills of a commit. `kind` and `place`: where the repository came from. `asked`: what the owner named."""
    name = find_commit(repository, commit)
    ref = _find_ref(asked or commit, name)
    kinds = {"100644": "file", "100755": "file", "120000": "a link", "160000": "another repository"}
    with ObjectReader(repository) as objects:
        entries = [
            _Entry(
                path, kinds.get(mode, "a special file"), mode == "100755", partial(_open_blob, objects, number, path)
            )
            for mode, number, path in list_commit(repository, name)
        ]
        try:
            yield from _read_entries(_bound(entries), lambda part: SkillSource(kind, place, part, name, ref), refused)
        except _MissingObject as error:
            raise FreeholdError("skill.refused", f"The object of {error} is missing in the repository") from None


def _find_ref(asked: str, commit: str) -> str | None:
    """The branch or tag that was asked for. None for a commit: the beginning of its hash, or such as HEAD~1."""
    return asked if asked != "HEAD" and REF.fullmatch(asked) and not commit.startswith(asked.lower()) else None


class _MissingObject(Exception):
    """Of a damaged repository, of which no skill is read: the reader of objects may be anywhere after it."""


@contextmanager
def _open_blob(objects: ObjectReader, number: str, path: str) -> Iterator[Callable[[int], bytes]]:
    found = objects.open(number)
    if found is None:
        raise _MissingObject(f"{path[:200]!a}")
    try:
        yield found.read
    finally:
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
