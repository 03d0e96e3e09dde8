"""An SFTP server (version 3, with the extensions of OpenSSH) on standard input and output, run in the computer.

It is an ordinary process there with the rights of the agent, so no path leads out of the computer. It is sent as text
and run by the Python of the computer: it must stay one file, uses the standard library only, and imports little of it.
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
MAX_REQUEST = MAX_PACKET + 1024
MAX_HANDLES = 512
PIPE_BYTES = 1024 * 1024
NAMES_PER_REPLY = 128
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


class RequestFields:
    """Reads the fields of one request in order. Raises `struct.error` when the request is too short."""

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

    def string(self) -> bytes:
        length = self.u32()
        start = self.at
        self.at += length
        if self.at > len(self.packet):
            raise error("a string is longer than its packet")
        return self.packet[start : self.at]

    def path(self) -> bytes:
        return self.string() or b"."

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
                self.string()
                self.string()
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


def encode_string(value: bytes) -> bytes:
    return U32.pack(len(value)) + value


def status_packet(request: int, code: int, message: bytes) -> bytes:
    body = HEAD.pack(0, 101, request)[4:] + U32.pack(code) + encode_string(message) + encode_string(b"")
    return U32.pack(len(body)) + body


def encode_attributes(found: os.stat_result) -> bytes:
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
    columns = f"{stat.filemode(found.st_mode)} {found.st_nlink:>3} {found.st_uid:<8} {found.st_gid:<8} {found.st_size:>8} {moment} "
    return columns.encode() + name


def set_attributes(target: int | bytes, wanted: dict[int, tuple[int, ...]]) -> None:
    """For a path or a descriptor. The order is that of OpenSSH: a file is truncated before its times are set."""
    if SIZE in wanted:
        os.truncate(target, wanted[SIZE][0])
    if MODE in wanted:
        os.chmod(target, wanted[MODE][0] & 0o7777)
    if TIMES in wanted:
        os.utime(target, (wanted[TIMES][0], wanted[TIMES][1]))
    if OWNERS in wanted:
        os.chown(target, wanted[OWNERS][0], wanted[OWNERS][1])


def set_link_attributes(path: bytes, wanted: dict[int, tuple[int, ...]]) -> None:
    """Like `set_attributes`, but does not follow a symbolic link. The size and mode of a link cannot be set."""
    if not stat.S_ISLNK(os.lstat(path).st_mode):
        set_attributes(path, wanted)
        return
    if SIZE in wanted or MODE in wanted:
        raise OSError(errno.EOPNOTSUPP, "Not supported for a symbolic link")
    if TIMES in wanted:
        os.utime(path, (wanted[TIMES][0], wanted[TIMES][1]), follow_symlinks=False)
    if OWNERS in wanted:
        os.chown(path, wanted[OWNERS][0], wanted[OWNERS][1], follow_symlinks=False)


def open_flags(asked: int) -> int:
    reading, writing = asked & 1, asked & 2
    flags = os.O_RDWR if reading and writing else os.O_WRONLY if writing else os.O_RDONLY
    for bit, flag in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
        if asked & bit:
            flags |= flag
    return flags | os.O_CLOEXEC | os.O_NOCTTY


class SftpServer:
    """Handles the requests of one client in order."""

    def __init__(self, *, link_first: bool = False) -> None:
        self._link_first = link_first
        self._handles: dict[bytes, OpenFile | OpenFolder] = {}
        self._next = 0

    def reply(self, packet: bytes) -> bytes:
        """The reply to one request. No length in the request is trusted."""
        if not packet:
            return b""
        kind = packet[0]
        if kind == 1:
            known = b"".join(encode_string(name) + encode_string(data) for name, data in EXTENSIONS)
            body = bytes((2,)) + U32.pack(VERSION) + known
            return U32.pack(len(body)) + body
        if len(packet) < 5:
            return status_packet(0, BAD_MESSAGE, b"too short")
        (request,) = U32.unpack_from(packet, 1)
        handler = HANDLERS.get(kind)
        if handler is None:
            return status_packet(request, UNSUPPORTED, b"unknown request")
        try:
            result = handler(self, RequestFields(packet, 5))
        except OSError as failure:
            code = STATUS_OF.get(failure.errno or 0, FAILURE)
            return status_packet(request, code, (failure.strerror or "failed").encode())
        except (error, ValueError, OverflowError):
            return status_packet(request, BAD_MESSAGE, b"bad message")
        except MemoryError:
            return status_packet(request, FAILURE, b"no memory")
        if result is None:
            return status_packet(request, OK, b"")
        if isinstance(result, int):
            message = b"end of file" if result == EOF else b"unsupported"
            return status_packet(request, result, message)
        kind, body = result
        return HEAD.pack(len(body) + 5, kind, request) + body

    # Files

    def open(self, fields: RequestFields) -> tuple[int, bytes]:
        path, asked, wanted = fields.path(), fields.u32(), fields.attributes()
        mode = wanted[MODE][0] & 0o7777 if MODE in wanted else 0o666
        self._require_free_handle()
        descriptor = os.open(path, open_flags(asked), mode)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        return 102, self._add_handle(OpenFile(descriptor, bool(asked & 4)))

    def close(self, fields: RequestFields) -> None:
        handle = self._handles.pop(fields.string(), None)
        if handle is None:
            raise OSError(errno.EBADF, "no such handle")
        handle.close()

    def read(self, fields: RequestFields) -> tuple[int, bytes] | int:
        file, offset, length = self._file(fields), fields.u64(), fields.u32()
        try:
            data = os.pread(file.descriptor, min(length, MAX_DATA), offset)
        except OSError as failure:
            if failure.errno != errno.ESPIPE:
                raise
            data = os.read(file.descriptor, min(length, MAX_DATA))
        return (103, U32.pack(len(data)) + data) if data else EOF

    def write(self, fields: RequestFields) -> None:
        file, offset = self._file(fields), fields.u64()
        length = fields.u32()
        data = memoryview(fields.packet)[fields.at : fields.at + length]
        if len(data) != length:
            raise error("the packet has less data than announced")
        while data:
            written = os.write(file.descriptor, data) if file.append else os.pwrite(file.descriptor, data, offset)
            data = data[written:]
            offset += written

    def fstat(self, fields: RequestFields) -> tuple[int, bytes]:
        return 105, encode_attributes(os.fstat(self._file(fields).descriptor))

    def fsetstat(self, fields: RequestFields) -> None:
        file = self._file(fields)
        set_attributes(file.descriptor, fields.attributes())

    # Paths

    def stat(self, fields: RequestFields) -> tuple[int, bytes]:
        return 105, encode_attributes(os.stat(fields.path()))

    def lstat(self, fields: RequestFields) -> tuple[int, bytes]:
        return 105, encode_attributes(os.lstat(fields.path()))

    def setstat(self, fields: RequestFields) -> None:
        set_attributes(fields.path(), fields.attributes())

    def remove(self, fields: RequestFields) -> None:
        os.unlink(fields.path())

    def mkdir(self, fields: RequestFields) -> None:
        path, wanted = fields.path(), fields.attributes()
        os.mkdir(path, wanted[MODE][0] & 0o7777 if MODE in wanted else 0o777)

    def rmdir(self, fields: RequestFields) -> None:
        os.rmdir(fields.path())

    def realpath(self, fields: RequestFields) -> tuple[int, bytes]:
        return self._name_reply(os.path.realpath(fields.path()))

    def rename(self, fields: RequestFields) -> None:
        """Fails when the target exists, as version 3 of the protocol requires."""
        source, target = fields.path(), fields.path()
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists")
        os.rename(source, target)

    def readlink(self, fields: RequestFields) -> tuple[int, bytes]:
        return self._name_reply(os.readlink(fields.path()))

    def symlink(self, fields: RequestFields) -> None:
        """OpenSSH sends the target first; clients that follow the draft standard send the link first."""
        if self._link_first:
            link, target = fields.path(), fields.string()
        else:
            target, link = fields.string(), fields.path()
        os.symlink(target, link)

    # Folders

    def opendir(self, fields: RequestFields) -> tuple[int, bytes]:
        self._require_free_handle()
        return 102, self._add_handle(OpenFolder(fields.path()))

    def readdir(self, fields: RequestFields) -> tuple[int, bytes] | int:
        folder = self._handles.get(fields.string())
        if not isinstance(folder, OpenFolder):
            raise OSError(errno.EBADF, "no such handle")
        rows: list[bytes] = []
        for name in folder.names:
            try:
                found = os.lstat(folder.path + b"/" + name)
            except OSError:  # removed in the meantime
                continue
            rows.append(encode_string(name) + encode_string(long_name(name, found)) + encode_attributes(found))
            if len(rows) >= NAMES_PER_REPLY:
                break
        return (104, U32.pack(len(rows)) + b"".join(rows)) if rows else EOF

    # Extensions of OpenSSH

    def extended(self, fields: RequestFields) -> tuple[int, bytes] | int | None:
        handler = EXTENSION_HANDLERS.get(fields.string())
        return handler(self, fields) if handler is not None else UNSUPPORTED

    def posix_rename(self, fields: RequestFields) -> None:
        source, target = fields.path(), fields.path()
        os.replace(source, target)

    def statvfs(self, fields: RequestFields) -> tuple[int, bytes]:
        return 201, encode_statvfs(os.statvfs(fields.path()))

    def fstatvfs(self, fields: RequestFields) -> tuple[int, bytes]:
        return 201, encode_statvfs(os.fstatvfs(self._file(fields).descriptor))

    def hardlink(self, fields: RequestFields) -> None:
        source, target = fields.path(), fields.path()
        os.link(source, target)

    def fsync(self, fields: RequestFields) -> None:
        os.fsync(self._file(fields).descriptor)

    def lsetstat(self, fields: RequestFields) -> None:
        set_link_attributes(fields.path(), fields.attributes())

    def limits(self, fields: RequestFields) -> tuple[int, bytes]:
        return 201, pack(">QQQQ", MAX_PACKET, MAX_DATA, MAX_DATA, MAX_HANDLES)

    def expand_path(self, fields: RequestFields) -> tuple[int, bytes]:
        path = fields.path()
        if path == b"~" or path.startswith(b"~/"):
            path = os.environb.get(b"HOME", b"/") + path[1:]
        elif path.startswith(b"~"):
            raise OSError(errno.ENOENT, "No such user")
        return self._name_reply(os.path.realpath(path))

    def home_directory(self, fields: RequestFields) -> tuple[int, bytes]:
        return self._name_reply(os.environb.get(b"HOME", b"/"))

    def copy_data(self, fields: RequestFields) -> None:
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

    def _file(self, fields: RequestFields) -> OpenFile:
        handle = self._handles.get(fields.string())
        if not isinstance(handle, OpenFile):
            raise OSError(errno.EBADF, "no such handle")
        return handle

    def _require_free_handle(self) -> None:
        if len(self._handles) >= MAX_HANDLES:
            raise OSError(errno.EMFILE, "too many open handles")

    def _add_handle(self, opened: OpenFile | OpenFolder) -> bytes:
        name = U32.pack(self._next)
        self._next = (self._next + 1) & 0xFFFFFFFF
        self._handles[name] = opened
        return encode_string(name)

    @staticmethod
    def _name_reply(path: bytes) -> tuple[int, bytes]:
        return 104, U32.pack(1) + encode_string(path) + encode_string(path) + U32.pack(0)


def encode_statvfs(found: os.statvfs_result) -> bytes:
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


HANDLERS: dict[int, Callable[[SftpServer, RequestFields], tuple[int, bytes] | int | None]] = {
    3: SftpServer.open,
    4: SftpServer.close,
    5: SftpServer.read,
    6: SftpServer.write,
    7: SftpServer.lstat,
    8: SftpServer.fstat,
    9: SftpServer.setstat,
    10: SftpServer.fsetstat,
    11: SftpServer.opendir,
    12: SftpServer.readdir,
    13: SftpServer.remove,
    14: SftpServer.mkdir,
    15: SftpServer.rmdir,
    16: SftpServer.realpath,
    17: SftpServer.stat,
    18: SftpServer.rename,
    19: SftpServer.readlink,
    20: SftpServer.symlink,
    200: SftpServer.extended,
}
EXTENSION_HANDLERS: dict[bytes, Callable[[SftpServer, RequestFields], tuple[int, bytes] | int | None]] = {
    b"posix-rename@openssh.com": SftpServer.posix_rename,
    b"statvfs@openssh.com": SftpServer.statvfs,
    b"fstatvfs@openssh.com": SftpServer.fstatvfs,
    b"hardlink@openssh.com": SftpServer.hardlink,
    b"fsync@openssh.com": SftpServer.fsync,
    b"lsetstat@openssh.com": SftpServer.lsetstat,
    b"limits@openssh.com": SftpServer.limits,
    b"expand-path@openssh.com": SftpServer.expand_path,
    b"copy-data": SftpServer.copy_data,
    b"home-directory": SftpServer.home_directory,
}


def serve(source: int, target: int, *, link_first: bool = False) -> int:
    """Serve until the end of input. Returns the exit code: 1 when a packet was too long."""
    for descriptor in (source, target):
        try:
            fcntl.fcntl(descriptor, 1031, PIPE_BYTES)  # F_SETPIPE_SZ: fewer and larger reads
        except OSError:
            continue
    server = SftpServer(link_first=link_first)
    buffer = bytearray()
    while data := os.read(source, PIPE_BYTES):
        buffer += data
        at = 0
        replies: list[bytes] = []
        size = 0
        length = 0
        while len(buffer) - at >= 4:
            (length,) = U32.unpack_from(buffer, at)
            if length > MAX_REQUEST or len(buffer) - at - 4 < length:
                break
            reply = server.reply(bytes(buffer[at + 4 : at + 4 + length]))
            at += 4 + length
            replies.append(reply)
            size += len(reply)
            if size >= MAX_PACKET:
                write_all(target, b"".join(replies))
                replies, size = [], 0
        del buffer[:at]
        write_all(target, b"".join(replies))
        if length > MAX_REQUEST:
            return 1
    return 0


def write_all(target: int, data: bytes) -> None:
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
