"""Runs inside the sandbox of a mount helper, with the standard library only and by the system's Python.

`launch` makes the listening sockets in the helper's own network, hands them out, gives up its capabilities, repairs the
cache and becomes the helper program. `fusermount` is what the helper program calls to get its mount: it is handed the prepared socket.
Both use descriptor CONTROL, a socket to the host, and FUSE, the socket that stands for the mount.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import sys
import time
from pathlib import Path

CONTROL, FUSE = 100, 101
CACHE = Path("/run/cache")
SIOCSIFADDR = 0x8916
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


def launch(settings: str, program: list[str]) -> None:
    """`settings` is JSON: `listen` is a list of [address, port, whether the address must be added], `data` a limit in bytes."""
    wanted = json.loads(settings)
    listeners = []
    for number, (address, port, is_added) in enumerate(wanted["listen"]):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if is_added:
            _add_address(family, address, number)
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((address, port))
        listener.listen(64)
        listeners.append(listener)
    with socket.socket(fileno=os.dup(CONTROL)) as control:
        socket.send_fds(control, [b"listening"], [listener.fileno() for listener in listeners])
    for kind, limit in (
        (resource.RLIMIT_DATA, wanted["data"]),
        (resource.RLIMIT_FSIZE, wanted["file_size"]),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    if ctypes.CDLL(None, use_errno=True).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities cannot be given up")
    repair_cache(CACHE)
    for descriptor in (CONTROL, FUSE):
        os.set_inheritable(descriptor, True)
    os.execv(program[0], program)  # noqa: S606 - it becomes the helper


def repair_cache(cache: Path) -> None:
    """Save unsent files whose record was cut off when rclone was killed: rclone would delete them.

    It keeps a record for each file in its cache and overwrites it in place, also when a file is closed. A file that is
    whole is recorded as unsent again. One that is empty or has holes may be half of a file that was being fetched, and
    is left to rclone.
    """
    for record in (cache / "vfsMeta").rglob("*"):
        with contextlib.suppress(OSError):  # a record that cannot be repaired holds no mount up
            if record.is_file() and not _is_json(record):
                whole = _describe_whole_file(cache / "vfs" / record.relative_to(cache / "vfsMeta"))
                if whole is not None:
                    repaired = cache / "repaired"
                    repaired.write_text(json.dumps(whole))
                    repaired.replace(record)


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return True


def _describe_whole_file(path: Path) -> "dict[str, object] | None":
    """rclone's record of it as unsent. None when it is missing, empty or has holes."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size and os.lseek(file.fileno(), 0, os.SEEK_HOLE) == status.st_size:
            changed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(status.st_mtime))
            return {
                "ModTime": changed,
                "ATime": changed,
                "Size": status.st_size,
                "Rs": [{"Pos": 0, "Size": status.st_size}],
                "Fingerprint": "",
                "Dirty": True,
            }
    return None


def _add_address(family: int, address: str, number: int) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as kernel:
        packed = socket.inet_pton(family, address)
        if family == socket.AF_INET6:
            request = struct.pack("16sIi", packed, 128, socket.if_nametoindex("lo"))
        else:
            request = struct.pack("16sH2s4s8s", f"lo:{number}".encode(), family, b"", packed, b"")
        fcntl.ioctl(kernel, SIOCSIFADDR, request)


def fusermount(words: list[str]) -> None:
    """Answer the helper as the system's fusermount does. The host mounts when it is told; unmounting is its own affair."""
    if "-u" in words:
        return
    with socket.socket(fileno=os.dup(CONTROL)) as control:
        control.send(b"mount")
    with socket.socket(fileno=int(os.environ["_FUSE_COMMFD"])) as asked:
        socket.send_fds(asked, [b"\0"], [FUSE])


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        launch(sys.argv[2], sys.argv[3:])
    else:
        fusermount(sys.argv[2:])
