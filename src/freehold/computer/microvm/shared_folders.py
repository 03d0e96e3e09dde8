"""Shares the folders of a computer with its virtual machine: one virtiofsd, with user ids of its own.

It runs in a user namespace in which the agent's uid is the computer's uid on the host, and root is a uid without any
rights. Whatever happens inside the virtual machine, no file on the host can get another owner.
"""

import os
import resource
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_GID, AGENT_UID
from freehold.computer.microvm.requirements import VmTools
from freehold.errors import FreeholdError

# Enters the namespaces, waits until the parent has written the ids, and becomes virtiofsd.
_ENTER = """
import ctypes, os, resource, sys
ready, go = int(sys.argv[1]), int(sys.argv[2])
for limit in (1000000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]):  # a container may not raise it
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        break
    except (OSError, ValueError):
        continue
if ctypes.CDLL(None).unshare(0x10000000 | 0x40000000 | 0x08000000 | 0x04000000):
    sys.exit("no user namespace")
os.write(ready, b"1")
if not os.read(go, 1):
    sys.exit("no ids")
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass(frozen=True)
class SharedFolders:
    """`connection` is for QEMU."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    @property
    def max_files(self) -> int:
        """How many files it can know at once: it holds a descriptor for each that the machine remembers."""
        return resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[0]


def share_folder(tools: VmTools, folder: Path, uid: int, entering: list[str], *, changes: bool) -> SharedFolders:
    """Share `folder`. `entering` begins the command line, to join control groups.

    Without `changes` the machine keeps what it has read: nothing in the folder may change while it runs.
    """
    with tempfile.TemporaryDirectory(prefix="freehold-share-") as place:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(f"{place}/socket")
            listener.listen(1)
            process = _start(tools, folder, uid, entering, listener, "auto" if changes else "always")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(f"{place}/socket")
    return SharedFolders(process, connection)


def _start(
    tools: VmTools, folder: Path, uid: int, entering: list[str], listener: socket.socket, cache: str
) -> subprocess.Popen[bytes]:
    told, ready = os.pipe()
    go, going = os.pipe()
    number = listener.fileno()
    if tools.shares_by_options:
        options = ["-o", f"source={folder},sandbox=chroot,cache={cache},announce_submounts", "--rlimit-nofile=0"]
    else:
        options = [f"--shared-dir={folder}", "--sandbox=chroot", f"--cache={cache}", "--announce-submounts"]
    command = [sys.executable, "-I", "-S", "-c", _ENTER, str(ready), str(go), tools.virtiofsd, f"--fd={number}"]
    try:
        process = subprocess.Popen(
            [*entering, *command, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[ready, go, number],
            start_new_session=True,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
        )
    finally:
        os.close(ready)
        os.close(go)
    try:
        if not os.read(told, 1):
            process.kill()
            process.wait()
            raise FreeholdError(
                "computer.no-isolation",
                "The folders cannot be shared: this kernel gives no user namespace",
                hint="sysctl -w user.max_user_namespaces=15000",
            )
        for name, inside in (("uid_map", AGENT_UID), ("gid_map", AGENT_GID)):
            Path(f"/proc/{process.pid}/{name}").write_text(f"0 {uid + 1} 1\n{inside} {uid} 1\n")
        os.write(going, b"1")
    finally:
        os.close(told)
        os.close(going)
    return process
