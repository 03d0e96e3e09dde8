"""The helper of a remote mount: rclone, in a sandbox and with a uid of its own.

It sees the system's programs, its configuration, its cache and a network in which there is nothing but the servers of
its mount. Its credentials are in a file that exists only in the sandbox's memory: not on a command line, not in an
environment, not on a disk.
"""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.mounts import helper_inside
from freehold.computer.mounts.endpoint_relay import ServerAddress
from freehold.computer.mounts.rclone_remote import RcloneRemote
from freehold.computer.walls.bind_stage import stage_sources
from freehold.computer.walls.ownership import chown_tree
from freehold.errors import FreeholdError

DEVICES = ("full", "null", "random", "urandom", "zero")
HELPER_UID = 64243
"""The uid of the helper when root starts it; else it has the uid of who starts it."""
START_TIMEOUT = 20.0
MAX_MEMORY = 1024**3
MAX_LINE = 4096
MAX_FILE = 8 * 1024**3
SHIM = b'#!/bin/sh\nexec /usr/bin/python3 -I -S /run/helper.py fusermount "$@"\n'


@dataclass(frozen=True)
class HelperOrder:
    """`uid` is the owner of the files that it shows. `cache` keeps what is not yet sent, also over a restart."""

    remote: RcloneRemote
    rclone: Path
    cache: Path
    uid: int
    writable: bool
    patience: float
    """Seconds that a server may be silent."""


def find_rclone() -> Path:
    """Raises `computer.no-rclone`."""
    found = shutil.which("rclone")
    if found is None or shutil.which("bwrap") is None:
        missing = "rclone" if found is None else "bubblewrap"
        raise FreeholdError(
            "computer.no-rclone",
            f"Remote mounts need {missing}, which is not installed",
            hint=f"apt install {missing}",
            kind="unavailable",
        )
    return Path(found).resolve()


class HelperProcess:
    """A running helper. `control` tells what it asks for, `fuse` carries the requests of its mount."""

    def __init__(self, order: HelperOrder, report: Callable[[bytes], None]) -> None:
        """`report` gets each line that the helper writes, in a thread. Blocking. Raises OSError, or `computer.no-isolation` when its folders cannot be made available."""
        self.control, self._control_inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.fuse, self._fuse_inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(START_TIMEOUT)
        started: Future[subprocess.Popen[bytes]] = Future()
        self.ended: Future[int] = Future()
        # It enters a mount namespace and is the parent that the sandbox must not outlive: a thread of its own.
        threading.Thread(target=self._live, args=(order, started, report), daemon=True, name="mount-helper").start()
        try:
            self._process = started.result()
        except BaseException:
            self.close()
            raise
        finally:
            self._control_inside.close()
            self._fuse_inside.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def receive_listeners(self) -> list[socket.socket]:
        """The listening sockets of its network, one for each endpoint. Blocking."""
        word, descriptors, _, _ = socket.recv_fds(self.control, 64, 64)
        listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if word != b"listening":
            for listener in listeners:
                listener.close()
            raise FreeholdError("computer.mount-failed", "The helper ended before it could listen", kind="unavailable")
        return listeners

    def await_mount_request(self) -> None:
        """Returns when the helper wants its mount. Blocking."""
        if self.control.recv(64) != b"mount":
            raise FreeholdError("computer.mount-failed", "rclone ended before it could mount", kind="unavailable")

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        self.control.close()
        self.fuse.close()

    def _live(
        self, order: HelperOrder, started: "Future[subprocess.Popen[bytes]]", report: Callable[[bytes], None]
    ) -> None:
        try:
            process = _start(order, self._control_inside.fileno(), self._fuse_inside.fileno())
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        assert process.stderr is not None
        try:
            with process.stderr as output:
                while line := output.readline(MAX_LINE):
                    report(line)
        finally:  # whatever it wrote, its end is known
            process.kill()
            self.ended.set_result(process.wait())


class HandedFiles(contextlib.ExitStack):
    """Open files for a process that is started now. `helper_inside.CONTROL` and `FUSE` get fixed numbers there, above
    those that rclone uses for its own children: these files are above both, so that none is replaced by them."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def add(self, descriptor: int) -> int:
        """Its number in the process."""
        lowest = max(helper_inside.CONTROL, helper_inside.FUSE) + 1
        number = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        self.callback(os.close, number)
        self.numbers.append(number)
        return number

    def add_content(self, content: bytes) -> str:
        descriptor = os.memfd_create("freehold")
        try:
            os.write(descriptor, content)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return str(self.add(descriptor))
        finally:
            os.close(descriptor)


def _start(order: HelperOrder, control: int, fuse: int) -> "subprocess.Popen[bytes]":
    order.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    sources = [order.cache, order.rclone]
    descent = ["setpriv", "--no-new-privs"]
    if os.geteuid() == 0:
        chown_tree(order.cache, HELPER_UID)
        places = stage_sources(sources)
        descent += [f"--reuid={HELPER_UID}", f"--regid={HELPER_UID}", "--clear-groups", "--inh-caps=-all"]
    else:
        places = [str(path.absolute()) for path in sources]
    with HandedFiles() as handed:
        words = list(_describe_sandbox(order, places, handed.add_content))
        arguments = handed.add_content(b"".join(os.fsencode(word) + b"\0" for word in words))
        control, fuse = handed.add(control), handed.add(fuse)
        move = f"exec {helper_inside.CONTROL}<&{control} {helper_inside.FUSE}<&{fuse} {control}<&- {fuse}<&-"
        shell = ["/bin/bash", "-c", f'{move}; exec "$@"', "helper"]
        return subprocess.Popen(
            [*shell, *descent, "bwrap", "--args", arguments, "--", *_describe_command(order)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            pass_fds=handed.numbers,
            start_new_session=True,
        )


def _describe_sandbox(order: HelperOrder, places: Sequence[str], hand_over: Callable[[bytes], str]) -> Iterator[str]:
    cache, rclone = places
    yield from [
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--uid",
        "1000",
        "--gid",
        "1000",
    ]
    # For the sockets of its network; given up before rclone runs.
    yield from ("--cap-add", "CAP_NET_ADMIN", "--cap-add", "CAP_NET_BIND_SERVICE")
    yield from ("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dir", "/etc", "--dir", "/run", "--dir", "/dev")
    # Not by --dev: for its terminals, bubblewrap makes a second user namespace, in which the capabilities above mean
    # nothing for the network of the first.
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        found = Path("/", name)
        if found.is_symlink():
            yield from ("--symlink", str(found.readlink()), f"/{name}")
        elif found.is_dir():
            yield from ("--ro-bind", str(found), f"/{name}")
    for name in ("ssl", "ca-certificates", "pki"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    hosts = "".join(
        f"{address} {one.host}\n" for one, address, is_added in _assign(order.remote.endpoints) if not is_added
    )
    for path, content in (
        ("/etc/hosts", hosts.encode()),
        ("/etc/nsswitch.conf", b"hosts: files\n"),
        ("/etc/resolv.conf", b""),
        ("/etc/passwd", b"helper:x:1000:1000::/run:/bin/false\n"),
    ):
        yield from ("--perms", "0444", "--file", hand_over(content), path)
    yield from ("--perms", "0600", "--file", hand_over(order.remote.configuration()), "/run/rclone.conf")
    inside = Path(helper_inside.__file__).read_bytes()
    yield from ("--perms", "0444", "--file", hand_over(inside), "/run/helper.py")
    for name in ("fusermount", "fusermount3"):
        yield from ("--perms", "0555", "--file", hand_over(SHIM), f"/run/bin/{name}")
    yield from ("--ro-bind", rclone, "/run/bin/rclone", "--bind", cache, "/run/cache")
    yield from ["--tmpfs", "/tmp", "--dir", "/run/mount", "--chdir", "/run"]  # noqa: S108 - in the sandbox
    yield from ["--clearenv", "--setenv", "PATH", "/run/bin:/usr/bin:/bin", "--setenv", "HOME", "/run"]


def _assign(endpoints: Sequence[ServerAddress]) -> Iterator[tuple[ServerAddress, str, bool]]:
    """The address inside at which each server is found, and whether the helper's network must be given that address."""
    for number, endpoint in enumerate(endpoints):
        if endpoint.is_address:
            yield endpoint, endpoint.host, not endpoint.host.startswith("127.") and endpoint.host != "::1"
        else:
            yield endpoint, f"127.77.0.{number + 1}", False


def _describe_command(order: HelperOrder) -> list[str]:
    listen = [[address, one.port, is_added] for one, address, is_added in _assign(order.remote.endpoints)]
    settings = json.dumps({"listen": listen, "data": MAX_MEMORY, "file_size": MAX_FILE})
    patience = f"{order.patience:g}s"
    command = [
        *("/usr/bin/python3", "-I", "-S", "/run/helper.py", "launch", settings),
        *("/run/bin/rclone", "mount", order.remote.target, "/run/mount", "--config", "/run/rclone.conf"),
        *("--cache-dir", "/run/cache", "--allow-other", "--default-permissions"),
        *("--uid", str(order.uid), "--gid", str(order.uid), "--umask", "077"),
        *("--contimeout", patience, "--timeout", patience, "--low-level-retries", "2", "--retries", "1"),
        *("--dir-cache-time", "5s", "--attr-timeout", "1s", "--poll-interval", "0", "--stats", "0"),
        *("--log-level", "ERROR", "--use-json-log"),
    ]
    if order.writable:
        return [*command, "--vfs-cache-mode", "writes", "--vfs-write-back", "1s", "--vfs-cache-poll-interval", "10s"]
    return [*command, "--read-only"]
