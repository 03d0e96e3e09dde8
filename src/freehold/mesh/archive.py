"""The files that work has made, as an archive: packed at the host, and read by the other side as hostile data."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.mesh.tar_entries import BadTar, read_entries

MAX_FILES = 2_000
MAX_BYTES = 32 * 1024 * 1024
MAX_PACKED = MAX_BYTES + MAX_FILES * 4096
MAX_PATH = 1_000
MAX_DEPTH = 30
MAX_SHOWN = 64 * 1024


@dataclass(frozen=True)
class ArchiveFile:
    """`path` is relative and has no `..`. A program has `is_program`; no other mode is taken over."""

    path: str
    data: bytes
    is_program: bool = False


def pack_files(files: Iterable[ArchiveFile]) -> bytes:
    """Raises `mesh.too-large`."""
    target = io.BytesIO()
    total = 0
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for count, one in enumerate(files, 1):
            total += len(one.data)
            if count > MAX_FILES or total > MAX_BYTES:
                raise FreeholdError(
                    "mesh.too-large", f"The work made more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
                )
            entry = tarfile.TarInfo(one.path)
            entry.size, entry.mode = len(one.data), 0o755 if one.is_program else 0o644
            archive.addfile(entry, io.BytesIO(one.data))
    return target.getvalue()


def read_archive(packed: bytes) -> list[ArchiveFile]:
    """All files of an archive. Raises `mesh.bad-file`, and then none of them is used, for anything but plain files.

    Refused are links, devices, paths that leave the folder or are named twice, and what is too large.
    """
    if len(packed) > MAX_PACKED:
        raise _bad("it is too large")
    found: dict[str, ArchiveFile] = {}
    total = 0
    try:
        for entry in read_entries(packed):
            path = _check_path(entry.path)
            total += len(entry.data)
            if total > MAX_BYTES or len(found) >= MAX_FILES:
                raise _bad("it is too large")
            if path in found:
                raise _bad(f"{path} is in it twice")
            found[path] = ArchiveFile(path, entry.data, bool(entry.mode & 0o100))
    except BadTar as error:
        raise _bad(str(error)) from None
    _check_folders(found)
    return [found[path] for path in sorted(found)]


def _check_path(path: str) -> str:
    """Raises `mesh.bad-file`."""
    problem = find_problem(path)
    if problem is not None:
        raise _bad(f"the path {path[:80]!a} {problem}")
    return path


def find_problem(path: str) -> str | None:
    """Why a path is not used: it is not plain, or leads out of the folder."""
    parts = path.split("/")
    if not path.isprintable() or "\\" in path or any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder or is not plain"
    if len(path.encode()) > MAX_PATH or len(parts) > MAX_DEPTH:
        return "is too long"
    return "has a name that is too long" if any(len(part.encode()) > 255 for part in parts) else None


def _check_folders(found: dict[str, ArchiveFile]) -> None:
    for path in found:
        above = path.rpartition("/")[0]
        while above:
            if above in found:
                raise _bad(f"{above} is a file and a folder")
            above = above.rpartition("/")[0]


def unpack_files(files: Iterable[ArchiveFile], root: Path, folder: tuple[str, ...]) -> None:
    """Writes the files below `folder` of an empty `root`, through handles of folders and without following a link."""
    with _opened(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)) as top:
        for one in files:
            parts = (*folder, *one.path.split("/"))
            with _folder(top, parts[:-1]) as handle:
                mode = 0o755 if one.is_program else 0o644
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with _opened(os.open(parts[-1], flags, mode, dir_fd=handle)) as target:
                    os.fchmod(target, mode)
                    view = memoryview(one.data)
                    while view:
                        view = view[os.write(target, view) :]


@contextmanager
def _folder(top: int, parts: tuple[str, ...]) -> Iterator[int]:
    handle = os.dup(top)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=handle)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _opened(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def digest_of(packed: bytes) -> str:
    return hashlib.sha256(packed).hexdigest()


def read_folder(text: str) -> tuple[str, ...]:
    """The folder of the workspace into which files are taken. Raises `mesh.bad-folder`."""
    parts = tuple(part for part in text.split("/") if part)
    if any(part in (".", "..") or not part.isprintable() or "\\" in part for part in parts) or len(parts) > MAX_DEPTH:
        raise FreeholdError(
            "mesh.bad-folder", f"{text[:80]!a} is not a folder of the workspace", hint="Give one such as site/new"
        )
    return parts


def _bad(reason: str) -> FreeholdError:
    return FreeholdError("mesh.bad-file", f"The returned archive is refused: {reason}", hint="Nothing of it was used")
