"""Starts child processes: with the fast C helper of `subprocess` if possible, else with fork."""

from __future__ import annotations

import _posixsubprocess
import fcntl
import resource

from freehold.guest.kernel import os, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = b"FREEHOLD_PROCESS"
"""A variable in every child's environment, to find and kill a daemon that left its Unix session."""
RLIMITS = {
    "cpu_time": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
MAX_LIMIT = 2**62

BLOCKED = [signals.SIGTERM, signals.SIGCHLD]
"""Signals that the guest reads from descriptors. Children receive them as usual."""


class OperationError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def to_bytes(text: object) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise OperationError("computer.bad-request", "Arguments, variables and folders must be strings without NUL")
    return os.fsencode(text)


class SpawnRequest:
    """A checked request to start a child: program, folder, variables and limits."""

    __slots__ = ("apart", "arguments", "environment", "executables", "folder", "limits")

    def __init__(self, message: dict[str, Any], base: dict[bytes, bytes], workspace: bytes, identity: bytes) -> None:
        arguments = message.get("argv")
        if not isinstance(arguments, list) or not arguments:
            raise OperationError("computer.bad-request", "A command needs at least a program")
        self.arguments = [to_bytes(argument) for argument in arguments]
        self.apart = to_bytes(message.get("apart") or "")
        environment = dict(base)
        for name, value in (message.get("env") or {}).items():
            if not name or "=" in name:
                raise OperationError("computer.bad-request", f"{name!r} is not a name for a variable")
            if value is None:
                environment.pop(to_bytes(name), None)
            else:
                environment[to_bytes(name)] = to_bytes(value)
        environment[MARKER] = identity
        self.environment = [name + b"=" + value for name, value in environment.items()]
        folder = to_bytes(message.get("cwd") or ".")
        self.folder = workspace + b"/" + folder if not folder.startswith(b"/") else folder
        self.limits = {
            RLIMITS[name]: min(max(0, int(value)), MAX_LIMIT)
            for name, value in (message.get("limits") or {}).items()
            if name in RLIMITS
        }
        program = self.arguments[0]
        if b"/" in program:
            self.executables: tuple[bytes, ...] = (program,)
        else:
            path = environment.get(b"PATH", b"/usr/bin:/bin")
            self.executables = tuple(folder + b"/" + program for folder in path.split(b":") if folder)


def start_child(request: SpawnRequest, stdin: int, stdout: int, stderr: int, terminal: bool = False) -> int:
    """Start the leader of a new Unix session; returns its pid. The descriptors become its 0, 1 and 2 and stay open here.

    With `terminal`, stdin is the slave side of a pty and becomes the controlling terminal.
    """
    error_reader, error_writer = os.pipe()
    former: list[tuple[int, tuple[int, int]]] = []
    signals.pthread_sigmask(signals.SIG_UNBLOCK, BLOCKED)
    try:
        _lower_limits(request.limits, former)
        pid = None if terminal else _start_fast(request, (stdin, stdout, stderr), error_reader, error_writer)
        if pid is None:
            pid = _start_by_fork(request, (stdin, stdout, stderr), error_writer, terminal)
    except BaseException as error:
        os.close(error_reader)
        if not isinstance(error, OSError):
            raise
        raise OperationError(
            "computer.cannot-start", f"The computer cannot start another process: {error.strerror}"
        ) from None
    finally:
        signals.pthread_sigmask(signals.SIG_BLOCK, BLOCKED)
        os.close(error_writer)
        for kind, limits in former:
            resource.setrlimit(kind, limits)
    try:
        trouble = os.read(error_reader, 400)
    finally:
        os.close(error_reader)
    if trouble:
        os.waitpid(pid, 0)
        raise _explain(request, trouble)
    for kind, value in request.limits.items():
        _harden_limit(pid, kind, value)
    return pid


def _start_fast(
    request: SpawnRequest, streams: tuple[int, int, int], error_reader: int, error_writer: int
) -> int | None:
    """Start with vfork, as subprocess does. None if the helper of this Python has another signature."""
    stdin, stdout, stderr = streams
    try:
        pid: int = _posixsubprocess.fork_exec(
            request.arguments, request.executables, True, (error_writer,), request.folder, request.environment,  # type: ignore[arg-type]
            stdin, -1, -1, stdout, -1, stderr, error_reader, error_writer, True, True, -1, None, None, None, -1, None, True,  # type: ignore[arg-type]
        )  # fmt: skip
    except (TypeError, ValueError):
        return None
    return pid


def _start_by_fork(request: SpawnRequest, streams: tuple[int, int, int], error_writer: int, terminal: bool) -> int:
    import termios  # for terminals only

    pid = os.fork()
    if pid:
        return pid
    stage = b"noexec:"
    try:
        os.setsid()
        if terminal:
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        signals.signal(signals.SIGPIPE, signals.SIG_DFL)
        os.chdir(request.folder)
        stage = b""
        environment = dict(item.split(b"=", 1) for item in request.environment)
        failure = FileNotFoundError(2, "")
        for program in request.executables:
            try:
                os.execve(program, request.arguments, environment)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failure = error  # type: ignore[assignment]
        raise failure
    except OSError as error:
        os.write(error_writer, b"OSError:%x:%s" % (error.errno or 0, stage))
    finally:
        os._exit(255)


def _lower_limits(limits: dict[int, int], former: list[tuple[int, tuple[int, int]]]) -> None:
    """Lower our soft limits, which the child inherits. The hard limits stay, so that `former` can be restored."""
    for kind, value in limits.items():
        soft, hard = resource.getrlimit(kind)
        former.append((kind, (soft, hard)))
        resource.setrlimit(kind, (_bounded(value, hard), hard))


def _harden_limit(pid: int, kind: int, value: int) -> None:
    """Set the hard limit of the child. For CPU time it is a second higher, so that SIGXCPU is seen before SIGKILL."""
    hard = resource.getrlimit(kind)[1]
    ceiling = _bounded(value, hard)
    try:
        resource.prlimit(pid, kind, (ceiling, _bounded(ceiling + 1, hard) if kind == resource.RLIMIT_CPU else ceiling))
    except (OSError, ValueError):
        return  # it has ended already


def _bounded(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _explain(request: SpawnRequest, trouble: bytes) -> OperationError:
    kind, _, rest = trouble.partition(b":")
    number, _, stage = rest.partition(b":")
    if kind != b"OSError":
        return OperationError("computer.cannot-start", f"The process could not be started: {os.fsdecode(rest)}")
    reason = os.strerror(int(number, 16))
    if stage.startswith(b"noexec"):
        return OperationError("computer.bad-folder", f"{os.fsdecode(request.folder)}: {reason}")
    return OperationError("computer.no-program", f"{os.fsdecode(request.arguments[0])}: {reason}")
