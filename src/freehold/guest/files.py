"""File operations in batches. They run in the guest, so no path can lead out of the computer.

A request is a list of items, which are done in order; one that fails does not stop the rest. Contents to write arrive on
stream 0, for each item as many bytes as it announced.
"""

# pathlib is too slow to import here
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH114, PTH116, PTH119, PTH120, TRY301

from __future__ import annotations

import os
import stat

from freehold.guest import leftovers, tree
from freehold.guest.batch import SOON, BatchOperation
from freehold.guest.codec import shorten
from freehold.guest.linked_folder import link_entries
from freehold.guest.spawn import OperationError, to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from freehold.guest.batch import Steps
    from freehold.guest.link import GuestChannel
    from freehold.guest.loop import Loop

CHUNK = 64 * 1024
OPEN = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

CODES = {
    "ENOENT": "not-found", "EEXIST": "exists", "ENOTEMPTY": "not-empty", "ENOTDIR": "not-a-folder", "EISDIR": "is-a-folder",
    "EACCES": "permission", "EPERM": "permission", "ENOSPC": "no-space", "EDQUOT": "no-space", "EFBIG": "too-large",
    "ELOOP": "too-many-links", "ENAMETOOLONG": "name-too-long", "EROFS": "read-only", "EMFILE": "busy", "ENFILE": "busy",
    "EINVAL": "bad-path", "EBUSY": "folder-in-use", "ETXTBSY": "folder-in-use", "ENXIO": "bad-kind", "ENODEV": "bad-kind",
    "EOPNOTSUPP": "bad-kind", "ESRCH": "not-found",
}  # fmt: skip

MUST_HAVE_NAME = (21, 22, 38, 95)
"""EISDIR, EINVAL, ENOSYS, EOPNOTSUPP: how a file system or kernel says that it has no files without a name."""


def describe_error(error: OSError) -> list[str]:
    import errno

    name = errno.errorcode.get(error.errno or 0, "")
    where = shorten(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes)) else ""
    return [
        "files." + CODES.get(name, "failed"),
        f"{where}: {error.strerror}" if where else shorten(str(error.strerror or error)),
    ]


class FileBatch(BatchOperation):
    """One list of file operations."""

    def __init__(self, loop: Loop, channel: GuestChannel, workspace: bytes, message: dict[str, Any]) -> None:
        self._workspace = workspace
        self._items: list[dict[str, Any]] = message["do"]
        if not isinstance(self._items, list) or not all(isinstance(item, dict) for item in self._items):
            raise OperationError("computer.bad-request", "`do` must be a list of objects")
        super().__init__(loop, channel)

    def answer(self) -> Steps:
        for item in self._items:
            try:
                operation = OPERATIONS[item["do"]]
                answer: dict[str, Any] = {"ok": (yield from operation(self, item))}
            except OSError as error:
                answer = {"error": describe_error(error)}
            except OperationError as error:
                answer = {"error": [error.code, shorten(str(error))]}
            except MemoryError:
                answer = {"error": ["files.no-memory", "The computer has not enough memory for this operation"]}
            except RecursionError:
                answer = {"error": ["files.too-deep", "The folders are nested too deeply"]}
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                answer = {"error": ["files.bad-request", shorten(f"{type(error).__name__}: {error}")]}
            yield from self.record(answer)
        self._channel.finish()

    def path(self, item: dict[str, Any], name: str = "path") -> bytes:
        path = to_bytes(item[name])
        return path if path.startswith(b"/") else self._workspace + b"/" + path

    def read(self, item: dict[str, Any]) -> Steps:
        descriptor = open_regular(self.path(item), os.O_RDONLY)
        try:
            found = os.fstat(descriptor)
            offset = int(item.get("offset") or 0)
            if offset:
                os.lseek(descriptor, offset, os.SEEK_SET)
            left = item.get("length")
            sent = 0
            while left is None or sent < left:
                room = self._channel.room(0)
                if room <= 0:
                    yield from self._wait()
                    continue
                data = os.read(descriptor, min(room, CHUNK) if left is None else min(room, CHUNK, left - sent))
                if not data:
                    break
                self._channel.send(0, data)
                sent += len(data)
                if len(data) < found.st_size:
                    yield SOON
            return {
                "bytes": sent,
                "size": found.st_size,
                "mtime": found.st_mtime_ns,
                "mode": stat.S_IMODE(found.st_mode),
            }
        finally:
            os.close(descriptor)

    def write(self, item: dict[str, Any]) -> Steps:
        """Write a new file, then put it in the place of the old one: readers, and a crash, see the old or the new contents."""
        size = item["size"]
        try:
            path = resolve(self.path(item))
            folder = os.path.dirname(path)
            if item.get("parents"):
                os.makedirs(folder, exist_ok=True)
            existing = _existing(path)
            if existing is not None and item.get("exclusive"):
                raise FileExistsError(17, "File exists", path)
            draft = Draft(folder)
        except BaseException:
            yield from self._skip(size)
            raise
        try:
            descriptor = draft.descriptor
            written = yield from self._receive_into(descriptor, size)
            mode = item.get("mode")
            if mode is not None or existing is not None:
                os.fchmod(descriptor, int(mode) & 0o7777 if mode is not None else stat.S_IMODE(existing.st_mode))  # type: ignore[union-attr]
            if item.get("durable"):
                os.fsync(descriptor)
            draft.move(path, replace=not item.get("exclusive"))
        finally:
            draft.close()
        return {"bytes": written}

    def append(self, item: dict[str, Any]) -> Steps:
        size = item["size"]
        try:
            descriptor = open_regular(self.path(item), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except BaseException:
            yield from self._skip(size)
            raise
        try:
            written = yield from self._receive_into(descriptor, size)
        finally:
            os.close(descriptor)
        return {"bytes": written}

    def _receive_into(self, descriptor: int, size: int | None) -> Steps:
        """Move `size` bytes (None: all) from the stream into a file. After an error the rest is skipped."""
        written = 0
        while size is None or written < size:
            if not self._inlet:
                if self._ended:
                    if size is not None:
                        raise OSError(22, "the input ended before the announced size")
                    break
                yield from self._wait()
                continue
            payload = self._next(None if size is None else size - written)
            written += len(payload)
            try:
                view = memoryview(payload)
                while view:
                    view = view[os.write(descriptor, view) :]
            except OSError:
                yield from self._skip(None if size is None else size - written)
                raise
            yield SOON
        return written

    def _next(self, most: int | None) -> bytes:
        payload = self._inlet.popleft()
        if most is not None and len(payload) > most:
            self._inlet.appendleft(payload[most:])
            payload = payload[:most]
        self._channel.grant(0, len(payload))
        return payload

    def _skip(self, size: int | None) -> Steps:
        while size is None or size > 0:
            if self._inlet:
                taken = len(self._next(size))
                size = None if size is None else size - taken
            elif self._ended:
                return
            else:
                yield from self._wait()

    def stat(self, item: dict[str, Any]) -> Steps:
        path = self.path(item)
        found = os.stat(path) if item.get("follow", True) else os.lstat(path)
        yield SOON
        return tree.describe_entry(os.path.basename(path), found, path)

    def list(self, item: dict[str, Any]) -> Steps:
        most = int(item["most"])
        rows = tree.list_folder(self.path(item), to_bytes(item.get("after", "")), most)
        return (yield from self.parts(rows, most))

    def walk(self, item: dict[str, Any]) -> Steps:
        rows = tree.walk_folder(
            self.path(item), int(item.get("depth") or 100_000), [to_bytes(name) for name in item.get("skip", ())]
        )
        return (yield from self.parts(rows, int(item["most"])))

    def glob(self, item: dict[str, Any]) -> Steps:
        return (yield from self.parts(tree.match_glob(self.path(item), to_bytes(item["pattern"])), int(item["most"])))

    def mkdir(self, item: dict[str, Any]) -> Steps:
        path = self.path(item)
        yield SOON
        if item.get("parents"):
            os.makedirs(path, int(item.get("mode", 0o777)), exist_ok=True)
        else:
            os.mkdir(path, int(item.get("mode", 0o777)))
        return True

    def move(self, item: dict[str, Any]) -> Steps:
        source, target = self.path(item), self.path(item, "to")
        if not item.get("replace") and os.path.lexists(target):
            raise FileExistsError(17, "File exists", target)
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno != 18:  # EXDEV: another mount, so copy and remove
                raise
            yield from tree.copy_tree(source, target)
            yield from tree.remove_tree(source)
        yield SOON
        return True

    def copy(self, item: dict[str, Any]) -> Steps:
        source, target = self.path(item), self.path(item, "to")
        if os.path.lexists(target):
            if not item.get("replace"):
                raise FileExistsError(17, "File exists", target)
            yield from tree.remove_tree(target)
        yield from tree.copy_tree(source, target)
        return True

    def remove(self, item: dict[str, Any]) -> Steps:
        path = self.path(item)
        if not os.path.lexists(path):
            if item.get("missing"):
                return False
            raise FileNotFoundError(2, "No such file or directory", path)
        if item.get("recursive"):
            yield from tree.remove_tree(path)
        elif stat.S_ISDIR(os.lstat(path).st_mode):
            os.rmdir(path)
        else:
            os.unlink(path)
        yield SOON
        return True

    def chmod(self, item: dict[str, Any]) -> Steps:
        os.chmod(self.path(item), int(item["mode"]) & 0o7777)
        yield SOON
        return True

    def links(self, item: dict[str, Any]) -> Steps:
        yield SOON
        return link_entries(self.path(item, "base"), to_bytes(item["path"]), self.path(item, "to"))


OPERATIONS = {
    name: getattr(FileBatch, name)
    for name in (
        "read", "write", "append", "stat", "list", "walk", "glob", "mkdir", "move", "copy", "remove", "chmod", "links",
    )
}  # fmt: skip


class Draft:
    """A new file in a folder that has no name until it is whole, where the file system can do that."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self._spare = b""
        """The name that it has until it gets its own."""
        try:
            self.descriptor = os.open(folder, os.O_WRONLY | os.O_TMPFILE | OPEN, 0o666)
        except OSError as error:
            if error.errno not in MUST_HAVE_NAME:
                raise
            self.descriptor = -1
            self._take_spare(self._create)

    def move(self, path: bytes, *, replace: bool) -> None:
        """Give it its name. Without `replace`, `FileExistsError` when the name is taken."""
        if not self._spare:
            try:
                self._link(path)
            except FileExistsError:
                if not replace:
                    raise
            else:
                return
            leftovers.lock(self.descriptor)
            self._take_spare(self._link)
        try:
            os.rename(self._spare, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        self._spare = b""

    def _take_spare(self, give: Callable[[bytes], None]) -> None:
        """A name at the top of the mount, where a leftover is found; beside its target where that is not possible."""
        name = leftovers.make_name()
        spare = leftovers.find_top(self._folder) + b"/" + name
        try:
            give(spare)
        except OSError:
            spare = self._folder + b"/" + name
            give(spare)
        self._spare = spare

    def _create(self, name: bytes) -> None:
        self.descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN, 0o666)
        leftovers.lock(self.descriptor)

    def _link(self, name: bytes) -> None:
        try:
            # With a folder, `os.link` follows the link in /proc to the file.
            os.link(b"/proc/self/fd/%d" % self.descriptor, name, src_dir_fd=self.descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from None

    def close(self) -> None:
        os.close(self.descriptor)
        if self._spare:
            tree.unlink_quietly(self._spare)


def open_regular(path: bytes, flags: int) -> int:
    """Open a regular file and nothing else. Files of /proc are refused: the guest sees more there than other processes may."""
    descriptor = os.open(path, flags | OPEN, 0o666)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_dev != tree.PROC:
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    raise PermissionError(1, "Not a regular file", path)


def resolve(path: bytes) -> bytes:
    """The target of a link, so that writing changes the linked file and does not replace the link."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _existing(path: bytes) -> os.stat_result | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    return found
