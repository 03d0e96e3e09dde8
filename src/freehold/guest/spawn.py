"""From a request to a running child: the fast way where the C helper fits, plain fork where it does not."""

from __future__ import annotations

import _posixsubprocess
import fcntl
import os
import resource
import termios

from freehold.guest.kernel import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = b"FREEHOLD_PROCESS"
"""In every child's environment, so that a daemon which left its session can still be found and ended."""
RLIMITS = {
    "cpu_time": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


BLOCKED = [signals.SIGTERM, signals.SIGCHLD]
"""Read from descriptors by the guest; its children get them as usual."""


class SpawnError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def to_bytes(text: object) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise SpawnError("computer.bad-request", "arguments, variables and folders are text without NUL")
    return os.fsencode(text)


class Request:
    """A child to be started, checked: what, where, with which variables and limits."""

    __slots__ = ("apart", "arguments", "environment", "executables", "folder", "limits")

    def __init__(self, message: dict[str, Any], base: dict[bytes, bytes], workspace: bytes, identity: bytes) -> None:
        arguments = message.get("argv")
        if not isinstance(arguments, list) or not arguments:
            raise SpawnError("computer.bad-request", "a command needs at least a program")
        self.arguments = [to_bytes(argument) for argument in arguments]
        self.apart = to_bytes(message.get("apart") or "")
        environment = dict(base)
        for name, value in (message.get("env") or {}).items():
            if not name or "=" in name:
                raise SpawnError("computer.bad-request", f"a variable cannot be called {name!r}")
            if value is None:
                environment.pop(to_bytes(name), None)
            else:
                environment[to_bytes(name)] = to_bytes(value)
        environment[MARKER] = identity
        self.environment = [name + b"=" + value for name, value in environment.items()]
        folder = to_bytes(message.get("cwd") or ".")
        self.folder = workspace + b"/" + folder if not folder.startswith(b"/") else folder
        self.limits = {
            RLIMITS[name]: int(value) for name, value in (message.get("limits") or {}).items() if name in RLIMITS
        }
        program = self.arguments[0]
        if b"/" in program:
            self.executables: tuple[bytes, ...] = (program,)
        else:
            path = environment.get(b"PATH", b"/usr/bin:/bin")
            self.executables = tuple(folder + b"/" + program for folder in path.split(b":") if folder)


def start(request: Request, stdin: int, stdout: int, stderr: int, terminal: bool = False) -> int:
    """The pid of a new session's leader. The descriptors become its 0, 1 and 2 and stay open here.

    With `terminal`, stdin is a pty's far side and becomes the controlling terminal.
    """
    watch, told = os.pipe()
    former = _lower_limits(request.limits)
    signals.pthread_sigmask(signals.SIG_UNBLOCK, BLOCKED)
    try:
        pid = None if terminal else _start_fast(request, (stdin, stdout, stderr), watch, told)
        if pid is None:
            pid = _start_by_fork(request, (stdin, stdout, stderr), told, terminal)
    except OSError as error:
        os.close(watch)
        raise SpawnError(
            "computer.cannot-start", f"The computer cannot start another process: {error.strerror}"
        ) from None
    finally:
        signals.pthread_sigmask(signals.SIG_BLOCK, BLOCKED)
        os.close(told)
        for kind, limits in former:
            resource.setrlimit(kind, limits)
    try:
        trouble = os.read(watch, 400)
    finally:
        os.close(watch)
    if trouble:
        os.waitpid(pid, 0)
        raise _explain(request, trouble)
    for kind, value in request.limits.items():
        _harden_limit(pid, kind, value)
    return pid


def _start_fast(request: Request, streams: tuple[int, int, int], watch: int, told: int) -> int | None:
    """By vfork, as subprocess does. None when this Python's helper has another signature."""
    stdin, stdout, stderr = streams
    try:
        pid: int = _posixsubprocess.fork_exec(
            request.arguments, request.executables, True, (told,), request.folder, request.environment,  # type: ignore[arg-type]
            stdin, -1, -1, stdout, -1, stderr, watch, told, True, True, -1, None, None, None, -1, None, True,  # type: ignore[arg-type]
        )  # fmt: skip
    except (TypeError, ValueError):
        return None
    return pid


def _start_by_fork(request: Request, streams: tuple[int, int, int], told: int, terminal: bool) -> int:
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
                os.execve(program, request.arguments, environment)  # noqa: S606
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failure = error  # type: ignore[assignment]
        raise failure
    except OSError as error:
        os.write(told, b"OSError:%x:%s" % (error.errno or 0, stage))
    finally:
        os._exit(255)


def _lower_limits(limits: dict[int, int]) -> list[tuple[int, tuple[int, int]]]:
    """A child inherits what we have at the moment of the fork. Only the soft side, so that we can have ours back."""
    former = []
    for kind, value in limits.items():
        soft, hard = resource.getrlimit(kind)
        former.append((kind, (soft, hard)))
        resource.setrlimit(kind, (_bounded(value, hard), hard))
    return former


def _harden_limit(pid: int, kind: int, value: int) -> None:
    """The hard side, once the child is another process. SIGKILL comes a second after SIGXCPU, or that would never be seen."""
    hard = resource.getrlimit(kind)[1]
    ceiling = _bounded(value, hard)
    try:
        resource.prlimit(pid, kind, (ceiling, _bounded(ceiling + 1, hard) if kind == resource.RLIMIT_CPU else ceiling))
    except (OSError, ValueError):
        return  # it is gone already


def _bounded(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _explain(request: Request, trouble: bytes) -> SpawnError:
    kind, _, rest = trouble.partition(b":")
    number, _, stage = rest.partition(b":")
    if kind != b"OSError":
        return SpawnError("computer.cannot-start", f"The process could not be started: {os.fsdecode(rest)}")
    reason = os.strerror(int(number, 16))
    if stage.startswith(b"noexec"):
        return SpawnError("computer.bad-folder", f"{os.fsdecode(request.folder)}: {reason}")
    return SpawnError("computer.no-program", f"{os.fsdecode(request.arguments[0])}: {reason}")
