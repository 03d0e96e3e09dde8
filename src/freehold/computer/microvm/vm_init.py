"""Pid 1 of a micro-VM. It runs inside, under the virtual machine's own kernel, and imports nothing of Freehold.

It builds the root that the agent sees, starts the guest as pid 1 of namespaces of its own, and joins each stream of the
host to the guest's listening socket. Two ports lead to the host. `control` carries one request and one answer at a time,
as lines of JSON. `streams` carries frames: kind, number of the stream, length or amount, content.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, NoReturn

HEAD = struct.Struct(">BII")
OPEN, DATA, CREDIT, CLOSE, ENDED, PAUSE, PAUSED, RESUME = range(1, 9)
WINDOW = 256 * 1024
MAX_PAYLOAD = 64 * 1024
SHARED = "/boot/shared"
IMAGE = "/boot/image"
REMOTE = "/run/remote"
"""Where the guest has what is mounted after the start. The kernel looks for mounts below it at each lookup."""
NEW_ROOT = "/boot/root"
GROUP = "/boot/cgroup/computer"
LINK = "/boot/link"
"""The guest's listening socket. It has a name that nothing in the guest's root leads to."""
NOSUID, NODEV, NOEXEC, RDONLY, REMOUNT, BIND, REC, PRIVATE = 2, 4, 8, 1, 32, 4096, 16384, 1 << 18
NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000
FREEZE_TIMEOUT = 5.0
MAX_REMEMBERED = 5000
WARM_TIMEOUT = 30.0
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    words = (source.encode(), target.encode(), None if kind is None else kind.encode())
    if libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()):
        raise OSError(ctypes.get_errno(), f"mount {source} {target}: {os.strerror(ctypes.get_errno())}")


def bind(source: str, target: str, read_only: bool = False) -> None:
    if os.path.isdir(source):  # noqa: PTH112 - pathlib is not loaded here
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, None, BIND | REC)
    mount("none", target, None, BIND | REMOUNT | NOSUID | NODEV | (RDONLY if read_only else 0))


def write(path: str, text: str) -> None:
    """Without file objects: after a load an emulated processor translates all code again that is used."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        data = text.encode()
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = part = os.read(descriptor, MAX_PAYLOAD)
        while part:
            part = os.read(descriptor, MAX_PAYLOAD)
            data += part
    finally:
        os.close(descriptor)
    return data.decode()


# The root that the agent sees


def build_root(plan: dict[str, Any]) -> None:
    """All of it is read-only but the folders, /tmp and /run."""
    root = NEW_ROOT
    os.makedirs(root, exist_ok=True)  # noqa: PTH103
    mount("root", root, "tmpfs", NOSUID | NODEV, "mode=0755,size=4m")
    for name in plan["system"]:
        show(f"{IMAGE}/{name}", f"{root}/{name}")
    if os.path.isdir(f"{IMAGE}/opt"):  # noqa: PTH112
        for name in os.listdir(f"{IMAGE}/opt"):  # noqa: PTH208
            if name != "freehold":
                show(f"{IMAGE}/opt/{name}", f"{root}/opt/{name}")
    for name in ("tmp", "run", "proc", "dev", "var", "etc", "sys"):
        os.makedirs(f"{root}/{name}", exist_ok=True)  # noqa: PTH103
    for name in ("tmp", "run"):
        os.symlink(f"../{name}", f"{root}/var/{name}")  # noqa: PTH211
    mount("tmp", f"{root}/tmp", "tmpfs", NOSUID | NODEV, f"mode=1777,size={plan['tmp']}")  # noqa: S108
    mount("run", f"{root}/run", "tmpfs", NOSUID | NODEV, f"mode=0755,size={plan['run']}")
    for path, text in plan["etc"].items():
        write(root + path, text)
    for source, target, read_only in plan["binds"]:
        bind(f"{SHARED}/{source}", root + target, read_only)
    if plan["remote"]:
        os.mkdir(root + REMOTE, 0o755)  # noqa: PTH102
        mount("remote", root + REMOTE, "virtiofs", NOSUID | NODEV)
    for name, target in plan["remote"]:
        os.makedirs(os.path.dirname(root + target), exist_ok=True)  # noqa: PTH103, PTH120
        os.symlink(f"{REMOTE}/{name}", root + target)  # noqa: PTH211
    for target, size in plan["memory"]:
        os.makedirs(root + target, exist_ok=True)  # noqa: PTH103
        mount("memory", root + target, "tmpfs", NOSUID | NODEV, f"mode=1777,size={size}")
    build_devices(f"{root}/dev", plan["tmp"])


def show(source: str, target: str) -> None:
    """A file, folder or link of the system, read-only; nothing if it does not exist."""
    if os.path.islink(source):  # noqa: PTH114
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
    elif os.path.exists(source):  # noqa: PTH110
        bind(source, target, read_only=True)


def build_devices(place: str, size: int) -> None:
    mount("dev", place, "tmpfs", NOSUID | NOEXEC, "mode=0755,size=64k")
    os.umask(0)
    for name, minor in DEVICES.items():
        os.mknod(f"{place}/{name}", 0o20666, os.makedev(1, minor))
    os.mknod(f"{place}/tty", 0o20666, os.makedev(5, 0))
    os.umask(0o022)
    for name, target in {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0"}.items():
        os.symlink(target, f"{place}/{name}")  # noqa: PTH211
    os.symlink("/proc/self/fd/1", f"{place}/stdout")  # noqa: PTH211
    os.symlink("/proc/self/fd/2", f"{place}/stderr")  # noqa: PTH211
    for name in ("pts", "shm"):
        os.mkdir(f"{place}/{name}")  # noqa: PTH102
    mount("devpts", f"{place}/pts", "devpts", NOSUID | NOEXEC, "newinstance,mode=0620,ptmxmode=0666")
    mount("shm", f"{place}/shm", "tmpfs", NOSUID | NODEV, f"mode=1777,size={size}")


def mask(plan: dict[str, Any]) -> None:
    """Hide what /proc tells about the kernel. Runs in the guest's namespaces, with its own /proc."""
    for name in plan["masked_files"]:
        if os.path.exists(f"/proc/{name}"):  # noqa: PTH110
            mount("/dev/null", f"/proc/{name}", None, BIND)
    for name in plan["masked_folders"]:
        if os.path.isdir(f"/proc/{name}"):  # noqa: PTH112
            mount("none", f"/proc/{name}", "tmpfs", RDONLY | NOSUID | NODEV | NOEXEC, "size=0,mode=0555")
    for name in plan["read_only_proc"]:
        if os.path.exists(f"/proc/{name}"):  # noqa: PTH110
            mount(f"/proc/{name}", f"/proc/{name}", None, BIND | REC)
            mount("none", f"/proc/{name}", None, BIND | REMOUNT | RDONLY | NOSUID | NODEV | NOEXEC)


# The guest


def start_guest(plan: dict[str, Any], listener: socket.socket) -> int:
    """The pid of the guest, as this program sees it. Every wall stands before the guest runs."""
    told, telling = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            become_guest_parent(plan, listener, telling)
        except BaseException as error:
            print(f"vm_init: {error}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(70)
    os.close(telling)
    pid = os.read(told, 16)
    os.close(told)
    os.waitpid(middle, 0)
    if not pid:
        raise RuntimeError("the guest could not be started; the console says why")
    return int(pid)


def become_guest_parent(plan: dict[str, Any], listener: socket.socket, telling: int) -> NoReturn:
    """Enter the group and the namespaces, and fork the guest, which this program then adopts."""
    os.setsid()
    write(f"{GROUP}/cgroup.procs", str(os.getpid()))
    if libc.unshare(NEWNS | NEWPID | NEWIPC | NEWUTS | NEWCGROUP):
        raise OSError(ctypes.get_errno(), "unshare")
    libc.sethostname(plan["hostname"].encode(), len(plan["hostname"].encode()))
    ready, begin = os.pipe()
    pid = os.fork()
    if pid:
        os.write(telling, str(pid).encode())
        os.close(ready)
        os._exit(0)
    os.close(begin)
    os.close(telling)
    os.read(ready, 1)  # until the parent has told the pid
    os.close(ready)
    become_guest(plan, listener)


def become_guest(plan: dict[str, Any], listener: socket.socket) -> NoReturn:
    mount("none", "/", None, REC | PRIVATE)
    os.chdir(NEW_ROOT)
    if libc.pivot_root(b".", b"."):
        raise OSError(ctypes.get_errno(), "pivot_root")
    if libc.umount2(b".", 2):
        raise OSError(ctypes.get_errno(), "umount")
    os.chdir("/")
    mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    mask(plan)
    mount("none", "/", None, BIND | REMOUNT | RDONLY | NOSUID | NODEV)
    write("/proc/self/loginuid", str(plan["uid"]))  # once it is set it cannot be changed
    for name, (soft, hard) in plan["rlimits"].items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(*[plan["gid"]] * 3)
    os.setresuid(*[plan["uid"]] * 3)
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no new privileges")
    for text in plan["filters"]:
        program = bytes.fromhex(text)
        code = ctypes.create_string_buffer(program, len(program))
        described = (len(program) // 8).to_bytes(8, "little") + ctypes.addressof(code).to_bytes(8, "little")
        if libc.prctl(22, 2, described, 0, 0):
            raise OSError(ctypes.get_errno(), "system-call filter")
    os.chdir(plan["folder"])
    os.set_inheritable(listener.fileno(), True)
    number = str(listener.fileno())
    command = [number if word == "LISTENER" else word for word in plan["command"]]
    os.execve(command[0], command, plan["environment"])  # noqa: S606


# What the host asks for


class Requests:
    """Answers the requests on the control port."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.guest = 0
        self._max_files = 0
        self._file_size = 0
        self._is_paused = False

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = getattr(self, f"do_{request['do']}")(request)
        except Exception as error:
            found = {"error": str(error)}
        return {**found, "id": request["id"]}

    def do_wake(self, request: dict[str, Any]) -> dict[str, Any]:
        """Set the clock and the randomness: machines that were copied would draw the same numbers."""
        time.clock_settime(time.CLOCK_REALTIME, request["time"])
        seed = bytes.fromhex(request["seed"])
        source = os.open("/dev/urandom", os.O_WRONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(source, 0x40085203, struct.pack("ii", len(seed) * 8, len(seed)) + seed)  # RNDADDENTROPY
            fcntl.ioctl(source, 0x5207)  # RNDRESEEDCRNG
        finally:
            os.close(source)
        if self._is_paused:
            write(f"{GROUP}/cgroup.freeze", "0")
            self._is_paused = False
        return {}

    def do_pause(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let nothing but this program run until `wake`: the machine is about to be saved."""
        self._is_paused = True
        if int(read("/proc/sys/fs/inode-nr").split()[0]) > MAX_REMEMBERED:
            write("/proc/sys/vm/drop_caches", "2")  # the host must find again each file that is remembered here
        write(f"{GROUP}/cgroup.freeze", "1")
        deadline = time.monotonic() + FREEZE_TIMEOUT
        while "frozen 1" not in read(f"{GROUP}/cgroup.events"):
            if time.monotonic() > deadline:
                self._is_paused = False
                write(f"{GROUP}/cgroup.freeze", "0")
                raise RuntimeError("a process cannot be frozen")
            time.sleep(0.001)
        return {}

    def do_warm(self, request: dict[str, Any]) -> dict[str, Any]:
        """Wait until the guest waits for its host, and read what a first command needs."""
        for command in (["/bin/sh", "-c", "exec /bin/true"], ["/usr/bin/env", "true"]):
            os.posix_spawn(command[0], command, {})  # `reap` buries it
        used, deadline = -1, time.monotonic() + WARM_TIMEOUT
        while time.monotonic() < deadline:
            now = int(read(f"{GROUP}/cpu.stat").split()[1])
            if now == used and self._blocks_sigterm():
                return {}
            used = now
            time.sleep(0.2)
        raise RuntimeError("the guest does not become quiet")

    def _blocks_sigterm(self) -> bool:
        masks = [line.split()[1] for line in read(f"/proc/{self.guest}/status").splitlines() if line[:7] == "SigBlk:"]
        return bool(int(masks[0], 16) >> (signal.SIGTERM - 1) & 1)

    def do_start(self, request: dict[str, Any]) -> dict[str, Any]:
        plan = request["plan"]
        self._file_size = plan["file_size"]
        self._max_files = plan["max_files"]
        os.makedirs(GROUP, exist_ok=True)  # noqa: PTH103
        for name, value in plan["group"].items():
            write(f"{GROUP}/{name}", value)
        build_root(plan)
        self.guest = start_guest(plan, self.listener)
        self.listener.close()
        return {"kernel": os.uname().release}

    def do_status(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the kernel confirms about the guest."""
        libc.syscall.restype = ctypes.c_long
        landlock: int = libc.syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))
        ns = f"/proc/{self.guest}/ns"
        names = ("pid", "mnt", "ipc", "uts", "cgroup")
        shared = [name for name in names if os.readlink(f"{ns}/{name}") == os.readlink(f"/proc/self/ns/{name}")]  # noqa: PTH115
        with open(f"/proc/{self.guest}/mountinfo", "rb") as file:  # noqa: PTH123 - names in it may be any bytes
            mounts = [line.split(b" ") for line in file.read().split(b"\n")[:-1]]
        return {
            "status": read(f"/proc/{self.guest}/status"),
            "landlock": landlock,
            "shared": shared,
            "root": next((words[5].decode() for words in reversed(mounts) if words[4] == b"/"), ""),
        }

    def do_usage(self, request: dict[str, Any]) -> dict[str, Any]:
        if int(read("/proc/sys/fs/inode-nr").split()[0]) > self._max_files:
            write("/proc/sys/vm/drop_caches", "2")  # the host holds a descriptor for each file that is remembered here
        names = ("memory.current", "memory.stat", "memory.events", "pids.current", "pids.events", "cpu.stat")
        return {name: read(f"{GROUP}/{name}") for name in names}

    def do_stop(self, request: dict[str, Any]) -> dict[str, Any]:
        os.kill(self.guest, request["signal"])
        return {}

    def do_hold(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let no file grow, or let them grow again. New processes inherit it."""
        size = 0 if request["held"] else self._file_size
        for pid in self._pids():
            try:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, self._file_size))
            except OSError:
                continue
        return {}

    def do_kill(self, request: dict[str, Any]) -> dict[str, Any]:
        """End every process but the guest."""
        pids = [pid for pid in self._pids() if pid != self.guest]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        return {"killed": len(pids)}

    def _pids(self) -> list[int]:
        return [int(word) for word in read(f"{GROUP}/cgroup.procs").split()]


# Streams


class Stream:
    """One connection of the host to the guest's socket. `credit` is what the host still takes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(LINK)
        self.socket.setblocking(False)
        self.credit = WINDOW
        self.unsent = b""
        self.consumed = 0


class Streams:
    """Joins the port `streams` to connections. A stream that is not read stops alone; the others go on.

    Between PAUSE and RESUME nothing is on its way: what would be sent is held.
    """

    def __init__(self, port: int, poll: select.poll) -> None:
        self._port = port
        self._poll = poll
        self._inbox = b""
        self._outbox = bytearray()
        self._held: bytearray | None = None
        self._streams: dict[int, Stream] = {}
        self._by_descriptor: dict[int, Stream] = {}

    def send(self, kind: int, number: int, amount: int, content: bytes = b"") -> None:
        out = self._outbox if self._held is None else self._held
        out += HEAD.pack(kind, number, amount) + content
        self.flush()

    def _pause(self) -> None:
        if self._held is None:
            self.send(PAUSED, 0, 0)
            self._held = bytearray()
            self._watch_all()

    def _resume(self) -> None:
        held, self._held = self._held, None
        self._outbox += held or b""
        self.flush()
        self._watch_all()

    def _watch_all(self) -> None:
        for stream in self._streams.values():
            self._watch(stream)

    def flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: os.write(self._port, self._outbox[:MAX_PAYLOAD])]
        except BlockingIOError:
            pass
        self._poll.register(self._port, select.POLLIN | (select.POLLOUT if self._outbox else 0))

    def receive(self) -> None:
        try:
            data = os.read(self._port, 4 * MAX_PAYLOAD)
        except BlockingIOError:
            return
        self._inbox += data
        while len(self._inbox) >= HEAD.size:
            kind, number, amount = HEAD.unpack_from(self._inbox)
            size = HEAD.size + (amount if kind == DATA else 0)
            if len(self._inbox) < size:
                return
            content, self._inbox = self._inbox[HEAD.size : size], self._inbox[size:]
            self._take(kind, number, amount, content)

    def owns(self, descriptor: int) -> bool:
        return descriptor in self._by_descriptor

    def _take(self, kind: int, number: int, amount: int, content: bytes) -> None:
        if kind == OPEN:
            self._open(number)
            return
        if kind in (PAUSE, RESUME):
            self._pause() if kind == PAUSE else self._resume()
            return
        stream = self._streams.get(number)
        if stream is None:
            return
        if kind == DATA:
            stream.unsent += content
            self._push(stream)
        elif kind == CREDIT:
            stream.credit += amount
            self._watch(stream)
        elif kind == CLOSE:
            self._forget(stream)

    def _open(self, number: int) -> None:
        try:
            stream = Stream(number)
        except OSError:
            self.send(CLOSE, number, 0)
            return
        self._streams[number] = self._by_descriptor[stream.socket.fileno()] = stream
        self._watch(stream)

    def ready(self, descriptor: int, events: int) -> None:
        stream = self._by_descriptor[descriptor]
        if events & select.POLLOUT:
            self._push(stream)
        if stream.number in self._streams and events & ~select.POLLOUT:
            self._pull(stream)

    def _push(self, stream: Stream) -> None:
        try:
            sent = stream.socket.send(stream.unsent) if stream.unsent else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(stream)
            return
        stream.unsent = stream.unsent[sent:]
        stream.consumed += sent
        if stream.consumed >= WINDOW // 4:
            self.send(CREDIT, stream.number, stream.consumed)
            stream.consumed = 0
        self._watch(stream)

    def _pull(self, stream: Stream) -> None:
        if stream.credit <= 0 or self._held is not None:
            return
        try:
            data = stream.socket.recv(min(stream.credit, MAX_PAYLOAD))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(stream)
            return
        stream.credit -= len(data)
        self.send(DATA, stream.number, len(data), data)
        self._watch(stream)

    def _watch(self, stream: Stream) -> None:
        reads = stream.credit > 0 and self._held is None
        wanted = (select.POLLIN if reads else 0) | (select.POLLOUT if stream.unsent else 0)
        self._poll.register(stream.socket, wanted)

    def _close(self, stream: Stream) -> None:
        self._forget(stream)
        self.send(CLOSE, stream.number, 0)

    def _forget(self, stream: Stream) -> None:
        self._poll.unregister(stream.socket)
        del self._streams[stream.number], self._by_descriptor[stream.socket.fileno()]
        stream.socket.close()


def open_ports() -> dict[str, int]:
    found: dict[str, int] = {}
    folder = "/sys/class/virtio-ports"
    while not {"control", "streams"} <= found.keys():
        for name in os.listdir(folder) if os.path.isdir(folder) else ():  # noqa: PTH112, PTH208
            label = read(f"{folder}/{name}/name").strip()
            if label in ("control", "streams") and label not in found:
                found[label] = os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        time.sleep(0.001)
    return found


def write_all(port: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(port, data) :]
        except BlockingIOError:
            select.select([], [port], [])


def bring_loopback_up() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS


def main() -> None:
    os.makedirs("/boot/cgroup", exist_ok=True)  # noqa: PTH103
    mount("cgroup", "/boot/cgroup", "cgroup2", NOSUID | NODEV | NOEXEC)
    write("/boot/cgroup/cgroup.subtree_control", "+memory +pids +cpu")
    write("/proc/sys/vm/overcommit_memory", "1")  # the limit of the group decides, and its reach is counted
    bring_loopback_up()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(LINK)
    listener.listen(128)
    requests = Requests(listener)
    ports = open_ports()
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(ports["control"], select.POLLIN)
    streams = Streams(ports["streams"], poll)
    streams.flush()
    write_all(ports["control"], b'{"hello": 1}\n')
    inbox = b""
    while True:
        for descriptor, events in poll.poll():
            if descriptor == ports["control"]:
                try:
                    inbox += os.read(descriptor, MAX_PAYLOAD)
                except BlockingIOError:
                    continue
                *lines, inbox = inbox.split(b"\n")
                for line in lines:
                    write_all(descriptor, json.dumps(requests.answer(json.loads(line))).encode() + b"\n")
            elif descriptor == ports["streams"]:
                if events & select.POLLIN:
                    streams.receive()
                streams.flush()
            elif descriptor == woken:
                os.read(woken, 4096)
                reap(requests, streams)
            elif streams.owns(descriptor):
                streams.ready(descriptor, events)


def reap(requests: Requests, streams: Streams) -> None:
    """Adopt and bury orphans. The end of the guest is told to the host, which ends the machine."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == requests.guest:
            streams.send(ENDED, 0, os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
