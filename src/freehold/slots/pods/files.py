"""Documents as files of this home. History records them, so that undo brings them back.

The name of a file tells its media type: by its ending, or after `$.` where the ending does not: `note$.txt` is the
document `note` of the type text/plain, and `x$.application%2Fx-own` has a type without an ending of its own.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mimetypes import MimeTypes
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from freehold.home import ensure_private_folder
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.pods.checks import VARIANT, changed, conflict, invalid, not_found
from freehold.slots.pods.contract import MAX_DOCUMENT, DocumentInfo

T = TypeVar("T")
DRAFT = ".freehold-"
LOOK_AGAIN = 0.05
_TYPES = MimeTypes()  # without the files of this machine, so that a name means the same everywhere
_TYPES.add_type("text/turtle", ".ttl")
_TYPES.add_type("application/ld+json", ".jsonld")
_TYPES.add_type("text/markdown", ".md")
_TYPES.add_type("text/n3", ".n3")
PLAIN = "application/octet-stream"


class PodFiles:
    """Blocking work is done in threads. A lock lets one process at a time change something."""

    kind = "local"

    def __init__(self, root: Path, lock: Path) -> None:
        self._root = root
        self._lock = lock

    async def connect(self) -> None:
        await self._run(ensure_private_folder, self._root)

    async def health(self) -> None:
        await self._run(os.listdir, self._root)

    async def close(self) -> None:
        """Nothing is held open."""

    async def read(self, path: str) -> tuple[DocumentInfo, bytes]:
        return await self._run(self._read, path)

    async def list_folder(self, folder: str) -> list[DocumentInfo]:
        return await self._run(self._list, folder)

    async def write(self, path: str, media: str, content: bytes, *, if_match: str | None, is_new: bool) -> DocumentInfo:
        return await self._run(self._write, path, media, content, if_match, is_new)

    async def patch_n3(self, path: str, patch: str, *, if_match: str | None) -> DocumentInfo:
        raise invalid("N3 Patch needs a Solid server; documents of this home are patched by JSON Patch")

    async def make_folder(self, folder: str) -> None:
        await self._run(self._make_folder, folder)

    async def delete(self, path: str, *, if_match: str | None) -> None:
        await self._run(self._delete, path, if_match)

    async def wait(self, path: str, etag: str, seconds: float) -> DocumentInfo:
        end = asyncio.get_running_loop().time() + seconds
        seen: tuple[int, int, int] | None = None
        while True:
            now = await self._run(self._stamp, path)
            if now != seen:
                seen = now
                info, _ = await self.read(path)
                if info.etag != etag:
                    return info
            if asyncio.get_running_loop().time() >= end:
                return info
            await asyncio.sleep(LOOK_AGAIN)

    # Blocking

    def _read(self, path: str) -> tuple[DocumentInfo, bytes]:
        file, media = self._require(path)
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as opened:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise not_found(path)
            if found.st_size > MAX_DOCUMENT:
                raise invalid(f"{path[:200]!a} has {found.st_size} bytes; a document has at most {MAX_DOCUMENT}")
            content = opened.read(MAX_DOCUMENT + 1)
        return DocumentInfo(path, media, etag_of(media, content), len(content), found.st_mtime), content

    def _list(self, folder: str) -> list[DocumentInfo]:
        found: dict[str, DocumentInfo] = {}
        place = self._walk(folder.removesuffix("/"))
        if place is None or not place.is_dir():
            raise not_found(folder)
        with os.scandir(place) as entries:
            for entry in entries:
                facts = entry.stat(follow_symlinks=False)
                if entry.name.startswith(DRAFT) or not _is_name(entry.name):
                    continue
                if stat.S_ISDIR(facts.st_mode):
                    info = DocumentInfo(f"{folder}{entry.name}/", None, None, None, facts.st_mtime)
                elif stat.S_ISREG(facts.st_mode):
                    name, media = split_name(entry.name)
                    info = DocumentInfo(folder + name, media, None, facts.st_size, facts.st_mtime)
                else:
                    continue
                known = found.get(info.path)
                if known is None or (known.modified or 0) < facts.st_mtime:
                    found[info.path] = info
        return [found[path] for path in sorted(found)]

    def _write(self, path: str, media: str, content: bytes, if_match: str | None, is_new: bool) -> DocumentInfo:
        with self._locked():
            old = self._find(path)
            if old is not None and old[0].is_dir():
                raise conflict(f"{path[:200]!a} is a folder")
            if is_new and old is not None:
                raise changed(path)
            if if_match is not None and (old is None or self._read(path)[0].etag != if_match):
                raise changed(path)
            folder, _, name = path.rpartition("/")
            place = self._make_folder(folder)
            target = place / join_name(name, media)
            draft = place / f"{DRAFT}{secrets.token_hex(6)}"
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as opened:
                    opened.write(content)
                    opened.flush()
                    os.fsync(descriptor)
                    facts = os.fstat(descriptor)
                draft.replace(target)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            if old is not None and old[0] != target:
                old[0].unlink(missing_ok=True)
            _sync(place)
        return DocumentInfo(path, media, etag_of(media, content), len(content), facts.st_mtime)

    def _make_folder(self, folder: str) -> Path:
        place = self._root
        for name in filter(None, folder.removesuffix("/").split("/")):
            if not _is_folder(place / name) and (os.path.lexists(place / name) or self._find_in(place, name)):
                raise conflict(f"{name[:80]!a} is a document, not a folder")
            place = place / name
            if not os.path.lexists(place):
                place.mkdir(mode=0o700)
                _sync(place.parent)
        return place

    def _delete(self, path: str, if_match: str | None) -> None:
        with self._locked():
            if path.endswith("/"):
                place = self._walk(path.removesuffix("/"))
                if place is None or not place.is_dir():
                    raise not_found(path)
                if self._list(path):
                    raise conflict(f"The folder {path[:200]!a} is not empty")
                place.rmdir()
                _sync(place.parent)
                return
            file, _ = self._require(path)
            if if_match is not None and self._read(path)[0].etag != if_match:
                raise changed(path)
            file.unlink()
            _sync(file.parent)

    def _stamp(self, path: str) -> tuple[int, int, int]:
        found = self._require(path)[0].lstat()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _require(self, path: str) -> tuple[Path, str]:
        found = self._find(path)
        if found is None or not found[0].is_file():
            raise not_found(path)
        return found

    def _find(self, path: str) -> tuple[Path, str] | None:
        """The file of a document with its media type; the newest, when a crash has left two."""
        folder, _, name = path.rpartition("/")
        place = self._walk(folder)
        return None if place is None else self._find_in(place, name)

    def _find_in(self, place: Path, name: str) -> tuple[Path, str] | None:
        plain = place / name
        found = []
        if os.path.lexists(plain) and not plain.is_symlink():
            found.append(plain)
        if place.is_dir():
            with os.scandir(place) as entries:
                found += [Path(one.path) for one in entries if one.name.startswith(name + VARIANT) and one.is_file()]
        if not found:
            return None
        newest = max(found, key=lambda one: one.lstat().st_mtime_ns)
        return newest, split_name(newest.name)[1]

    def _walk(self, folder: str) -> Path | None:
        """The folder, through no link; None when it does not exist."""
        place = self._root
        for name in filter(None, folder.split("/")):
            place = place / name
            if not _is_folder(place):
                return None
        return place

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            os.close(held)

    async def _run(self, function: Callable[..., T], *args: object) -> T:
        try:
            return await asyncio.to_thread(function, *args)
        except SlotError:
            raise
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
                raise invalid("The path, or its media type, is too long for this file system") from error
            raise slot_unavailable("pods", f"{error.strerror or error}") from error


def split_name(file: str) -> tuple[str, str]:
    """The name of a document and its media type, from the name of its file."""
    name, mark, ending = file.rpartition(VARIANT)
    if not mark:
        return file, _TYPES.guess_type(file, strict=True)[0] or PLAIN
    if "%2F" in ending:
        return name, unquote(ending)
    return name, _TYPES.guess_type(f"x.{ending}")[0] or PLAIN


def join_name(name: str, media: str) -> str:
    """The name of the file of a document."""
    if split_name(name)[1] == media:
        return name
    ending = _TYPES.guess_extension(media)
    if ending is not None and _TYPES.guess_type(f"x{ending}")[0] == media:
        return f"{name}${ending}"
    return f"{name}{VARIANT}{quote(media, safe='')}"


def etag_of(media: str, content: bytes) -> str:
    """The same content has the same ETag, also after an undo."""
    return f'"{hashlib.sha256(media.encode() + bytes(1) + content).hexdigest()[:32]}"'


def _is_folder(path: Path) -> bool:
    """A folder itself, not a link to one."""
    return os.path.lexists(path) and stat.S_ISDIR(path.lstat().st_mode)


def _is_name(file: str) -> bool:
    """Names that are not UTF-8, which only another program can have made, cannot be told."""
    return file.isprintable() and "\\" not in file


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
