"""The first program of a computer that somebody else starts. The host writes it into the folder of the link.

It reports what the kernel says about its walls, and becomes the guest if the host accepts them. Standard library only,
and no import of anything else here: it runs inside.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import sys
import time
import zipimport
from typing import Any

PAUSE_SECONDS = 0.2
REFUSED_SECONDS = 5.0
MAX_ANSWER = 1 << 20
MAX_DEVICES = 1000
NAMESPACES = ("pid", "mnt", "net", "ipc", "uts")
CGROUP_FILES = (
    *("memory.max", "pids.max", "cpu.max"),
    *("memory/memory.limit_in_bytes", "pids/pids.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"),
)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def main(guest: str, folders: list[str]) -> None:
    """Wait for the host, report, and become the guest, which is in the folder of the link."""
    connection = connect(guest.rpartition("/")[0] + "/handover")
    send(connection, describe_walls(folders))
    answer, descriptors = receive(connection)
    if "refused" in answer:
        for line in answer["refused"]:
            sys.stderr.write(f"Freehold refuses this computer: {line}\n")
        time.sleep(REFUSED_SECONDS)
        sys.exit(1)
    listener, errors, control = descriptors
    os.environ.clear()
    os.environ.update(answer["environment"])
    set_login_uid()
    for program in answer["filters"]:
        apply_filter(bytes.fromhex(program))
    send(connection, {"status": read("/proc/self/status")})
    connection.close()
    os.dup2(errors, 2)
    os.close(errors)
    for descriptor in (listener, control):
        os.set_inheritable(descriptor, False)
    words = ["--listen", str(listener), "--control", str(control), "--hold", answer["held_ports"]]
    sys.argv = ["guest", *words]
    exec(zipimport.zipimporter(guest).get_code("__main__"), {"__name__": "__main__"})  # noqa: S102 - the guest itself


def connect(path: str) -> socket.socket:
    """The host may start later than this, and starts again after it died."""
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            time.sleep(PAUSE_SECONDS)
        else:
            return connection


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    connection.sendall(len(data).to_bytes(4, "big") + data)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A host that goes away is waited for by the next start of the container."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    size, data = int.from_bytes(head, "big"), b""
    while len(head) == 4 and len(data) < size <= MAX_ANSWER:
        part = connection.recv(size - len(data))
        if not part:
            break
        data += part
    if not size or len(data) != size:
        sys.exit("Freehold went away before it answered")
    return json.loads(data), list(descriptors)


def describe_walls(folders: list[str]) -> dict[str, Any]:
    """What the kernel says about this process. The host judges it."""
    mounts = read("/proc/self/mountinfo")
    places = {*folders, *list_mounts(mounts)}
    return {
        "pid": os.getpid(),
        "status": read("/proc/self/status"),
        "limits": read("/proc/self/limits"),
        "mounts": mounts,
        "namespaces": {name: identify_namespace(name) for name in NAMESPACES},
        "interfaces": read("/proc/self/net/dev"),
        "cgroup": {name: read(f"/sys/fs/cgroup/{name}") for name in CGROUP_FILES},
        "sizes": {place: measure(place) for place in places},
        "folders": {place: identify(place) for place in places},
        "kinds": {place: find_kind(place) for place in places},
        "devices": list_devices({*places} - {"/", "/dev"}),
    }


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read(1 << 20)
    except OSError:
        return ""


def list_mounts(table: str) -> list[str]:
    """Where something is mounted. The kernel escapes what would end a word or a line."""
    words = [line.split(" ")[4] for line in table.split("\n")[:-1]]
    for escape in ("\\011", "\\012", "\\040", "\\134"):  # the backslash last
        words = [word.replace(escape, chr(int(escape[1:], 8))) for word in words]
    return words


def identify_namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115
    except OSError:
        return ""


def find_kind(place: str) -> str:
    """`bare` is a folder without a file, and `null` the device that has nothing."""
    try:
        found = os.stat(place)  # noqa: PTH116
    except OSError:
        return "unknown"
    if stat.S_ISDIR(found.st_mode):
        return "bare" if is_bare(place) else "folder"
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3):
        return "null"
    return "file" if stat.S_ISREG(found.st_mode) else "other"


def is_bare(folder: str, depth: int = 4) -> bool:
    try:
        with os.scandir(folder) as entries:
            return all(one.is_dir(follow_symlinks=False) and depth and is_bare(one.path, depth - 1) for one in entries)
    except OSError:
        return False


def list_devices(elsewhere: set[str]) -> dict[str, list[int]]:
    """Devices in the root and in /dev: kind, major and minor number. Other mounts are judged as a whole."""
    found: dict[str, list[int]] = {}
    folders = ["/"]
    while folders and len(found) < MAX_DEVICES:
        try:
            with os.scandir(folders.pop()) as entries:
                for one in entries:
                    if one.is_dir(follow_symlinks=False):
                        folders += [] if one.path in elsewhere else [one.path]
                    elif not (one.is_symlink() or one.is_file(follow_symlinks=False)):
                        mode, device = one.stat(follow_symlinks=False).st_mode, one.stat(follow_symlinks=False).st_rdev
                        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                            found[one.path] = [stat.S_IFMT(mode), os.major(device), os.minor(device)]
        except OSError:
            continue  # what this user cannot list it cannot open either: no path in it is known
    return found


def measure(place: str) -> int:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return found.f_blocks * found.f_frsize


def identify(place: str) -> list[int]:
    try:
        found = os.stat(place)  # noqa: PTH116 - nothing is imported that is not needed
    except OSError:
        return []
    return [found.st_dev, found.st_ino]


def set_login_uid() -> None:
    """Once it is set it cannot be changed: what happens inside is never recorded as done by another user."""
    try:
        with open("/proc/self/loginuid", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(str(os.getuid()))
    except OSError:
        return


def apply_filter(program: bytes) -> None:
    """One filter of system calls more. Raises SystemExit if the kernel refuses it."""
    libc = ctypes.CDLL(None)
    code = ctypes.create_string_buffer(program, len(program))
    head = (len(program) // 8).to_bytes(8, "little") + ctypes.addressof(code).to_bytes(8, "little")
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        sys.exit("a filter of system calls could not be applied")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
