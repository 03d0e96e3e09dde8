"""An SFTP server (version 3, with OpenSSH's extensions) on its standard streams, run inside the computer.

It is a process like any other there, with the same rights as the agent's own: no path can lead it outside. Sent in as
text and run by the computer's Python, so it needs the standard library alone and imports little of it.
"""

# pathlib is too slow to import here
# ruff: noqa: PTH101, PTH102, PTH104, PTH105, PTH106, PTH108, PTH115, PTH116, PTH208, PTH211

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time
from struct import Struct, error, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 3
MAX_PACKET = 256 * 1024
MAX_DATA = MAX_PACKET - 1024
LONGEST = MAX_PACKET + 1024
MAX_HANDLES = 512
PIPE = 1024 * 1024
NAMES_AT_ONCE = 128
SIZE, OWNERS, MODE, TIMES, EXTENDED = 1, 2, 4, 8, 0x80000000
OK, EOF, NO_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
STATUS_OF = {
    errno.ENOENT: NO_FILE,
    errno.ENOTDIR: NO_FILE,
    errno.ELOOP: NO_FILE,
    errno.EBADF: NO_FILE,
    errno.EPERM: DENIED,
    errno.EACCES: DENIED,
    errno.EFAULT: DENIED,
    errno.ENAMETOOLONG: BAD_MESSAGE,
    errno.EINVAL: BAD_MESSAGE,
    errno.ENOSYS: UNSUPPORTED,
}
EXTENSIONS = (
    (b"posix-rename@openssh.com", b"1"),
    (b"statvfs@openssh.com", b"2"),
    (b"fstatvfs@openssh.com", b"2"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"lsetstat@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
    (b"expand-path@openssh.com", b"1"),
    (b"copy-data", b"1"),
    (b"home-directory", b"1"),
)
U32, U64, HEAD, DATA_HEAD, IO = Struct(">I"), Struct(">Q"), Struct(">IBI"), Struct(">IBII"), Struct(">QI")


class Fields:
    """The fields of one request, taken in order. Raises `struct.error` when it is shorter than it claims."""

    def __init__(self, packet: bytes, at: int) -> None:
        self.packet = packet
        self.at = at

    def u32(self) -> int:
        (value,) = U32.unpack_from(self.packet, self.at)
        self.at += 4
        return int(value)

    def u64(self) -> int:
        (value,) = U64.unpack_from(self.packet, self.at)
        self.at += 8
        return int(value)

    def text(self) -> bytes:
        length = self.u32()
        start = self.at
        self.at += length
        if self.at > len(self.packet):
            raise error("a string that is longer than its packet")
        return self.packet[start : self.at]

    def path(self) -> bytes:
        return self.text() or b"."

    def attributes(self) -> dict[int, tuple[int, ...]]:
        flags = self.u32()
        found: dict[int, tuple[int, ...]] = {}
        if flags & SIZE:
            found[SIZE] = (self.u64(),)
        if flags & OWNERS:
            found[OWNERS] = (self.u32(), self.u32())
        if flags & MODE:
            found[MODE] = (self.u32(),)
        if flags & TIMES:
            found[TIMES] = (self.u32(), self.u32())
        if flags & EXTENDED:
            for _ in range(self.u32()):
                self.text()
                self.text()
        return found


class OpenFile:
    __slots__ = ("append", "descriptor")

    def __init__(self, descriptor: int, append: bool) -> None:
        self.descriptor = descriptor
        self.append = append

    def close(self) -> None:
        os.close(self.descriptor)


class OpenFolder:
    __slots__ = ("names", "path")

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.names: Iterator[bytes] = iter([b".", b"..", *sorted(os.listdir(path))])

    def close(self) -> None:
        return


def text(value: bytes) -> bytes:
    return U32.pack(len(value)) + value


def status_packet(request: int, code: int, words: bytes) -> bytes:
    body = HEAD.pack(0, 101, request)[4:] + U32.pack(code) + text(words) + text(b"")
    return U32.pack(len(body)) + body


def encode(found: os.stat_result) -> bytes:
    return pack(
        ">IQIIIII",
        SIZE | OWNERS | MODE | TIMES,
        found.st_size,
        found.st_uid,
        found.st_gid,
        found.st_mode,
        int(found.st_atime) & 0xFFFFFFFF,
        int(found.st_mtime) & 0xFFFFFFFF,
    )


def long_name(name: bytes, found: os.stat_result) -> bytes:
    when = time.localtime(found.st_mtime)
    recent = abs(time.time() - found.st_mtime) < 182 * 86400
    moment = time.strftime("%b %e %H:%M" if recent else "%b %e  %Y", when)
    words = f"{stat.filemode(found.st_mode)} {found.st_nlink:>3} {found.st_uid:<8} {found.st_gid:<8} {found.st_size:>8} {moment} "
    return words.encode() + name


def set_attributes(target: int | bytes, wanted: dict[int, tuple[int, ...]]) -> None:
    """On a path or an open file. In the order of OpenSSH's server, so that a truncated file gets its old time."""
    if SIZE in wanted:
        os.truncate(target, wanted[SIZE][0])
    if MODE in wanted:
        os.chmod(target, wanted[MODE][0] & 0o7777)
    if TIMES in wanted:
        os.utime(target, (wanted[TIMES][0], wanted[TIMES][1]))
    if OWNERS in wanted:
        os.chown(target, wanted[OWNERS][0], wanted[OWNERS][1])


def set_link_attributes(path: bytes, wanted: dict[int, tuple[int, ...]]) -> None:
    """On the name itself, be it a link or not. A link has neither a size nor a mode of its own to set."""
    if not stat.S_ISLNK(os.lstat(path).st_mode):
        set_attributes(path, wanted)
        return
    if SIZE in wanted or MODE in wanted:
        raise OSError(errno.EOPNOTSUPP, "Not supported for a link")
    if TIMES in wanted:
        os.utime(path, (wanted[TIMES][0], wanted[TIMES][1]), follow_symlinks=False)
    if OWNERS in wanted:
        os.chown(path, wanted[OWNERS][0], wanted[OWNERS][1], follow_symlinks=False)


def flags_of(asked: int) -> int:
    reading, writing = asked & 1, asked & 2
    flags = os.O_RDWR if reading and writing else os.O_WRONLY if writing else os.O_RDONLY
    for bit, flag in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
        if asked & bit:
            flags |= flag
    return flags | os.O_CLOEXEC | os.O_NOCTTY


class Server:
    """One client's requests, answered in order."""

    def __init__(self, *, link_first: bool = False) -> None:
        self._link_first = link_first
        self._handles: dict[bytes, OpenFile | OpenFolder] = {}
        self._next = 0

    def answer(self, packet: bytes) -> bytes:
        """The answer to one request, without trust in any of its lengths."""
        if not packet:
            return b""
        kind = packet[0]
        if kind == 1:
            known = b"".join(text(name) + text(data) for name, data in EXTENSIONS)
            body = bytes((2,)) + U32.pack(VERSION) + known
            return U32.pack(len(body)) + body
        if len(packet) < 5:
            return status_packet(0, BAD_MESSAGE, b"too short")
        (request,) = U32.unpack_from(packet, 1)
        work = WORK.get(kind)
        if work is None:
            return status_packet(request, UNSUPPORTED, b"unknown request")
        try:
            answer = work(self, Fields(packet, 5))
        except OSError as trouble:
            code = STATUS_OF.get(trouble.errno or 0, FAILURE)
            return status_packet(request, code, (trouble.strerror or "failed").encode())
        except (error, ValueError, OverflowError):
            return status_packet(request, BAD_MESSAGE, b"bad message")
        except MemoryError:
            return status_packet(request, FAILURE, b"no memory")
        if answer is None:
            return status_packet(request, OK, b"")
        if isinstance(answer, int):
            words = b"end of file" if answer == EOF else b"unsupported"
            return status_packet(request, answer, words)
        reply, body = answer
        return HEAD.pack(len(body) + 5, reply, request) + body

    # Files

    def open(self, fields: Fields) -> tuple[int, bytes]:
        path, asked, wanted = fields.path(), fields.u32(), fields.attributes()
        mode = wanted[MODE][0] & 0o7777 if MODE in wanted else 0o666
        self._room()
        descriptor = os.open(path, flags_of(asked), mode)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        return 102, self._keep(OpenFile(descriptor, bool(asked & 4)))

    def close(self, fields: Fields) -> None:
        handle = self._handles.pop(fields.text(), None)
        if handle is None:
            raise OSError(errno.EBADF, "no such handle")
        handle.close()

    def read(self, fields: Fields) -> tuple[int, bytes] | int:
        file, offset, length = self._file(fields), fields.u64(), fields.u32()
        try:
            data = os.pread(file.descriptor, min(length, MAX_DATA), offset)
        except OSError as trouble:
            if trouble.errno != errno.ESPIPE:
                raise
            data = os.read(file.descriptor, min(length, MAX_DATA))
        return (103, U32.pack(len(data)) + data) if data else EOF

    def write(self, fields: Fields) -> None:
        file, offset = self._file(fields), fields.u64()
        length = fields.u32()
        data = memoryview(fields.packet)[fields.at : fields.at + length]
        if len(data) != length:
            raise error("fewer bytes than announced")
        while data:
            written = os.write(file.descriptor, data) if file.append else os.pwrite(file.descriptor, data, offset)
            data = data[written:]
            offset += written

    def fstat(self, fields: Fields) -> tuple[int, bytes]:
        return 105, encode(os.fstat(self._file(fields).descriptor))

    def fsetstat(self, fields: Fields) -> None:
        file = self._file(fields)
        set_attributes(file.descriptor, fields.attributes())

    # Paths

    def stat(self, fields: Fields) -> tuple[int, bytes]:
        return 105, encode(os.stat(fields.path()))

    def lstat(self, fields: Fields) -> tuple[int, bytes]:
        return 105, encode(os.lstat(fields.path()))

    def setstat(self, fields: Fields) -> None:
        set_attributes(fields.path(), fields.attributes())

    def remove(self, fields: Fields) -> None:
        os.unlink(fields.path())

    def mkdir(self, fields: Fields) -> None:
        path, wanted = fields.path(), fields.attributes()
        os.mkdir(path, wanted[MODE][0] & 0o7777 if MODE in wanted else 0o777)

    def rmdir(self, fields: Fields) -> None:
        os.rmdir(fields.path())

    def realpath(self, fields: Fields) -> tuple[int, bytes]:
        return self._named(os.path.realpath(fields.path()))

    def rename(self, fields: Fields) -> None:
        """Never over something that is there: this version of the protocol promises that."""
        source, target = fields.path(), fields.path()
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists")
        os.rename(source, target)

    def readlink(self, fields: Fields) -> tuple[int, bytes]:
        return self._named(os.readlink(fields.path()))

    def symlink(self, fields: Fields) -> None:
        """The target first, as OpenSSH sends it; the link, as the draft says, from those who keep to that with us."""
        if self._link_first:
            link, target = fields.path(), fields.text()
        else:
            target, link = fields.text(), fields.path()
        os.symlink(target, link)

    # Folders

    def opendir(self, fields: Fields) -> tuple[int, bytes]:
        self._room()
        return 102, self._keep(OpenFolder(fields.path()))

    def readdir(self, fields: Fields) -> tuple[int, bytes] | int:
        folder = self._handles.get(fields.text())
        if not isinstance(folder, OpenFolder):
            raise OSError(errno.EBADF, "no such handle")
        rows: list[bytes] = []
        for name in folder.names:
            try:
                found = os.lstat(folder.path + b"/" + name)
            except OSError:  # removed since
                continue
            rows.append(text(name) + text(long_name(name, found)) + encode(found))
            if len(rows) >= NAMES_AT_ONCE:
                break
        return (104, U32.pack(len(rows)) + b"".join(rows)) if rows else EOF

    # OpenSSH's own

    def extended(self, fields: Fields) -> tuple[int, bytes] | int | None:
        work = EXTENDED_WORK.get(fields.text())
        return work(self, fields) if work is not None else UNSUPPORTED

    def posix_rename(self, fields: Fields) -> None:
        source, target = fields.path(), fields.path()
        os.replace(source, target)

    def statvfs(self, fields: Fields) -> tuple[int, bytes]:
        return 201, _space(os.statvfs(fields.path()))

    def fstatvfs(self, fields: Fields) -> tuple[int, bytes]:
        return 201, _space(os.fstatvfs(self._file(fields).descriptor))

    def hardlink(self, fields: Fields) -> None:
        source, target = fields.path(), fields.path()
        os.link(source, target)

    def fsync(self, fields: Fields) -> None:
        os.fsync(self._file(fields).descriptor)

    def lsetstat(self, fields: Fields) -> None:
        set_link_attributes(fields.path(), fields.attributes())

    def limits(self, fields: Fields) -> tuple[int, bytes]:
        return 201, pack(">QQQQ", MAX_PACKET, MAX_DATA, MAX_DATA, MAX_HANDLES)

    def expand_path(self, fields: Fields) -> tuple[int, bytes]:
        path = fields.path()
        if path == b"~" or path.startswith(b"~/"):
            path = os.environb.get(b"HOME", b"/") + path[1:]
        elif path.startswith(b"~"):
            raise OSError(errno.ENOENT, "No such user")
        return self._named(os.path.realpath(path))

    def home_directory(self, fields: Fields) -> tuple[int, bytes]:
        return self._named(os.environb.get(b"HOME", b"/"))

    def copy_data(self, fields: Fields) -> None:
        source, offset, length = self._file(fields), fields.u64(), fields.u64()
        target, place = self._file(fields), fields.u64()
        left = length or None
        while left is None or left:
            data = os.pread(source.descriptor, MAX_DATA if left is None else min(MAX_DATA, left), offset)
            if not data:
                break
            view = memoryview(data)
            while view:
                written = os.pwrite(target.descriptor, view, place)
                view, place = view[written:], place + written
            offset += len(data)
            left = None if left is None else left - len(data)

    # Inside

    def _file(self, fields: Fields) -> OpenFile:
        handle = self._handles.get(fields.text())
        if not isinstance(handle, OpenFile):
            raise OSError(errno.EBADF, "no such handle")
        return handle

    def _room(self) -> None:
        if len(self._handles) >= MAX_HANDLES:
            raise OSError(errno.EMFILE, "too many open handles")

    def _keep(self, opened: OpenFile | OpenFolder) -> bytes:
        name = U32.pack(self._next)
        self._next = (self._next + 1) & 0xFFFFFFFF
        self._handles[name] = opened
        return text(name)

    @staticmethod
    def _named(path: bytes) -> tuple[int, bytes]:
        return 104, U32.pack(1) + text(path) + text(path) + U32.pack(0)


def _space(found: os.statvfs_result) -> bytes:
    flags = found.f_flag & 3
    return pack(
        ">11Q",
        found.f_bsize,
        found.f_frsize,
        found.f_blocks,
        found.f_bfree,
        found.f_bavail,
        found.f_files,
        found.f_ffree,
        found.f_favail,
        found.f_fsid,
        flags,
        found.f_namemax,
    )


WORK: dict[int, Callable[[Server, Fields], tuple[int, bytes] | int | None]] = {
    3: Server.open,
    4: Server.close,
    5: Server.read,
    6: Server.write,
    7: Server.lstat,
    8: Server.fstat,
    9: Server.setstat,
    10: Server.fsetstat,
    11: Server.opendir,
    12: Server.readdir,
    13: Server.remove,
    14: Server.mkdir,
    15: Server.rmdir,
    16: Server.realpath,
    17: Server.stat,
    18: Server.rename,
    19: Server.readlink,
    20: Server.symlink,
    200: Server.extended,
}
EXTENDED_WORK: dict[bytes, Callable[[Server, Fields], tuple[int, bytes] | int | None]] = {
    b"posix-rename@openssh.com": Server.posix_rename,
    b"statvfs@openssh.com": Server.statvfs,
    b"fstatvfs@openssh.com": Server.fstatvfs,
    b"hardlink@openssh.com": Server.hardlink,
    b"fsync@openssh.com": Server.fsync,
    b"lsetstat@openssh.com": Server.lsetstat,
    b"limits@openssh.com": Server.limits,
    b"expand-path@openssh.com": Server.expand_path,
    b"copy-data": Server.copy_data,
    b"home-directory": Server.home_directory,
}


def serve(source: int, target: int, *, link_first: bool = False) -> int:
    """Until the client is done. 1 when it sent a packet that no client sends."""
    for descriptor in (source, target):
        try:
            fcntl.fcntl(descriptor, 1031, PIPE)  # F_SETPIPE_SZ: fewer and larger reads
        except OSError:
            continue
    server = Server(link_first=link_first)
    waiting = bytearray()
    while data := os.read(source, PIPE):
        waiting += data
        at = 0
        answers: list[bytes] = []
        held = 0
        length = 0
        while len(waiting) - at >= 4:
            (length,) = U32.unpack_from(waiting, at)
            if length > LONGEST or len(waiting) - at - 4 < length:
                break
            answer = server.answer(bytes(waiting[at + 4 : at + 4 + length]))
            at += 4 + length
            answers.append(answer)
            held += len(answer)
            if held >= MAX_PACKET:
                send(target, b"".join(answers))
                answers, held = [], 0
        del waiting[:at]
        send(target, b"".join(answers))
        if length > LONGEST:
            return 1
    return 0


def send(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def main() -> None:
    try:
        code = serve(0, 1, link_first="--link-first" in sys.argv)
    except (BrokenPipeError, KeyboardInterrupt):
        code = 0
    os._exit(code)


if __name__ == "__main__":
    main()
