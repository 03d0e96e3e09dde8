"""The walls of an isolate, built after the fork and before the first byte of foreign code. None of them can be taken down.

Resource limits hold memory, files and descriptors. A Landlock domain of its own holds files, TCP ports, signals and
abstract sockets. A system-call filter refuses what the rest of the computer may do: processes, programs, sockets,
signals to others, memory that no limit counts, and changes to files that Landlock does not know.

The zygote prepares everything that all isolates have in common, so that a child needs three calls.
"""

# pathlib and contextlib are too slow to import here
# ruff: noqa: PTH112

from __future__ import annotations

import ctypes
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PID_MARK = 0x5A5A1234
"""Stands in the filter for the pid of the isolate, the only process that it may signal."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_PATH_BENEATH, _NET_PORT = 1, 2
_SET_SECCOMP, _FILTER_MODE, _NO_NEW_PRIVILEGES = 22, 2, 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_BIND_TCP, _CONNECT_TCP = 1, 2
_FIRST_WITH_TRUNCATE, _FIRST_WITH_NETWORK, _FIRST_WITH_SCOPES = 3, 4, 6
_ALL_SCOPES = 3
PAGE = os.sysconf("SC_PAGE_SIZE")
READABLE_DEVICES = ("/dev/zero", "/dev/urandom", "/dev/random")
"""A mapping of /dev/zero that can be written is memory that no limit counts."""
SHARED = (
    "/usr",
    "/opt/agents",
    "/opt/freehold",
    "/opt/packages",
    "/lib",
    "/lib64",
    "/etc/localtime",
    "/etc/ssl",
    "/etc/pki",
)
PROXY_PORT = 3128
LIMITED = (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


class WallError(Exception):
    """A wall cannot be built. The isolate must not run anything."""


class Walls:
    """`closed` and `networked` are the compiled filters: without and with sockets."""

    def __init__(self, readable: Iterable[str], closed: bytes, networked: bytes) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long
        self._readable = [path for path in dict.fromkeys((*SHARED, *readable)) if path]
        self._filters = (closed, networked)
        self._version = self._libc.syscall(_CREATE_RULESET, None, ctypes.c_long(0), 1)
        if self._version < 1:
            raise WallError("this kernel has no Landlock, which keeps isolates from files")
        every_right = (
            16
            if self._version >= 5
            else 15
            if self._version >= _FIRST_WITH_TRUNCATE
            else 14
            if self._version >= 2
            else 13
        )
        self._rights = (1 << every_right) - 1
        self.ruleset = self._make_ruleset((), network=False)
        self._hard = {kind: resource.getrlimit(kind)[1] for kind in LIMITED}
        self._program = b""
        self._head = b""
        self._statm = -1

    def rehearse(self) -> None:
        """In the child, while it is parked: everything that needs no request."""
        self._libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        self._prepare_filter(self._filters[0])
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._read_data_size()

    def build(
        self, memory: int, file_size: int, open_files: int, grants: Sequence[Sequence[str]], network: bool
    ) -> None:
        """In the child, for good."""
        data = self._read_data_size() + memory
        os.close(self._statm)
        for kind, value in zip(LIMITED, (data, file_size, open_files), strict=True):
            hard = self._hard[kind]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
        ruleset = self._make_ruleset(grants, network) if grants or network else self.ruleset
        self._call(_RESTRICT_SELF, ruleset, 0)
        for one in {ruleset, self.ruleset}:  # what a child adds to the shared one would hold for its siblings
            os.close(one)
        if network:
            self._prepare_filter(self._filters[1])
        if self._libc.prctl(_SET_SECCOMP, _FILTER_MODE, self._head, 0, 0):
            raise WallError(f"the system-call filter was refused: {os.strerror(ctypes.get_errno())}")

    def _prepare_filter(self, program: bytes) -> None:
        program = program.replace(PID_MARK.to_bytes(4, "little"), os.getpid().to_bytes(4, "little"))
        self._program = program  # must stay where it is
        address = id(program) + bytes.__basicsize__ - 1
        self._head = (len(program) // 8).to_bytes(8, "little") + address.to_bytes(8, "little")

    def _make_ruleset(self, grants: Sequence[Sequence[str]], network: bool) -> int:
        if network and self._version < _FIRST_WITH_NETWORK:
            raise WallError("the network grant needs Linux 6.7 or later, whose Landlock can hold it to one port")
        words = [self._rights]
        if self._version >= _FIRST_WITH_NETWORK:
            words.append(_BIND_TCP | _CONNECT_TCP)
        if self._version >= _FIRST_WITH_SCOPES:
            words.append(_ALL_SCOPES)
        rules = b"".join(word.to_bytes(8, "little") for word in words)
        ruleset = self._call(_CREATE_RULESET, rules, len(rules), 0)
        for path in self._readable:
            self._allow(ruleset, path, _READ, needed=False)
        for path in READABLE_DEVICES:
            self._allow(ruleset, path, _READ_FILE, needed=False)
        self._allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE, needed=False)
        for path, mode in grants:
            self._allow(ruleset, path, self._rights if mode == "rw" else _READ, needed=True)
        if network:
            rule = _CONNECT_TCP.to_bytes(8, "little") + PROXY_PORT.to_bytes(8, "little")
            self._call(_ADD_RULE, ruleset, _NET_PORT, rule, 0)
        return ruleset

    def _allow(self, ruleset: int, path: str, access: int, needed: bool) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            if needed:
                raise WallError(f"{path}: {error.strerror}") from None
            return
        try:
            if not os.path.isdir(path):
                access &= _OF_FILES
            rule = (access & self._rights).to_bytes(8, "little") + place.to_bytes(4, "little")
            self._call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(place)

    def _call(self, number: int, *arguments: object) -> int:
        result: int = self._libc.syscall(
            ctypes.c_long(number), *(ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
        )
        if result < 0:
            raise WallError(f"Landlock: {os.strerror(ctypes.get_errno())}")
        return result

    def _read_data_size(self) -> int:
        """Bytes that RLIMIT_DATA counts now: what the zygote has is not the isolate's."""
        return int(os.pread(self._statm, 256, 0).split()[5]) * PAGE
