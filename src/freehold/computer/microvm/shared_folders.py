"""Shares the folders of a computer with its virtual machine: one virtiofsd, with user ids of its own.

It runs in a user namespace in which the agent's uid is the computer's uid on the host, and root is a uid without any
rights. Whatever happens inside the virtual machine, no file on the host can get another owner.
"""

import contextlib
import ctypes
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_GID, AGENT_UID
from freehold.computer.microvm.requirements import VmTools
from freehold.errors import FreeholdError

_AT_FDCWD, _AT_SYMLINK_FOLLOW, _MAX_HANDLE = -100, 0x400, 128
_libc = ctypes.CDLL(None, use_errno=True)

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
    """A program that shares a folder. `connection` is for QEMU, which may use it before `admit`.

    `told` and `going` are the ends of pipes: the program has its namespaces, and may go on.
    """

    process: subprocess.Popen[bytes]
    connection: socket.socket
    told: int
    going: int

    @property
    def max_files(self) -> int:
        """How many files it can know at once: it holds a descriptor for each that the machine remembers."""
        return resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[0]

    def holds_nameless_files(self) -> bool:
        """Whether the machine uses a file that was deleted: nobody could find it again by its path."""
        for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                name = str(descriptor.readlink())
                if name.endswith(" (deleted)") and not name.startswith("/memfd:") and descriptor.stat().st_nlink == 0:
                    return True
        return False

    def admit(self, uid: int) -> None:
        """Give the program its two user ids. It does nothing before that. Raises `computer.no-isolation`."""
        if not os.read(self.told, 1):
            raise FreeholdError(
                "computer.no-isolation",
                "The folders cannot be shared: this kernel gives no user namespace",
                hint="sysctl -w user.max_user_namespaces=15000",
            )
        for name, inside in (("uid_map", AGENT_UID), ("gid_map", AGENT_GID)):
            Path(f"/proc/{self.process.pid}/{name}").write_text(f"0 {uid + 1} 1\n{inside} {uid} 1\n")
        os.write(self.going, b"1")

    def end(self) -> None:
        """Idempotent but for the descriptors: call it once."""
        self.process.kill()
        self.process.wait()
        self.connection.close()
        os.close(self.told)
        os.close(self.going)


def has_file_handles(path: Path) -> bool:
    """Whether the file system can say that a file is the same as before, even if its number was used again."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", _MAX_HANDLE, 0), 8 + _MAX_HANDLE)
    mount = ctypes.c_int()
    found: int = _libc.name_to_handle_at(_AT_FDCWD, os.fsencode(path), handle, ctypes.byref(mount), _AT_SYMLINK_FOLLOW)
    return found == 0


@dataclass(frozen=True)
class ShareMode:
    """Without `changes` the machine keeps what it has read: nothing in the folder may change while it runs.

    A machine that is saved remembers files by their paths. With `verifies` each must be the same file again when the
    machine is loaded. With `forgives` a machine whose files are gone is loaded, and gets errors for those; else it is not.
    `at_once` requests are carried out at the same time; with 0 one after the other, which is faster for local files.
    """

    changes: bool
    verifies: bool = True
    forgives: bool = False
    at_once: int = 0


def share_folder(tools: VmTools, folder: Path, entering: list[str], mode: ShareMode) -> SharedFolders:
    """`entering` begins the command line, to join control groups. Call `admit` then."""
    with tempfile.TemporaryDirectory(prefix="freehold-share-") as place:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(f"{place}/socket")
            listener.listen(1)
            process, told, going = _start(tools, folder, entering, listener.fileno(), mode)
        share = SharedFolders(process, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), told, going)
        try:
            share.connection.connect(f"{place}/socket")
        except OSError:  # the program has ended
            share.end()
            raise
    return share


def _start(
    tools: VmTools, folder: Path, entering: list[str], listener: int, mode: ShareMode
) -> tuple[subprocess.Popen[bytes], int, int]:
    told, ready = os.pipe()
    go, going = os.pipe()
    cache = "auto" if mode.changes else "always"
    if tools.shares_by_options:
        options = ["-o", f"source={folder},sandbox=chroot,cache={cache},announce_submounts", "--rlimit-nofile=0"]
    else:
        options = [f"--shared-dir={folder}", "--sandbox=chroot", f"--cache={cache}", "--announce-submounts"]
        options += ["--migration-verify-handles"] if tools.can_save and mode.verifies else []
        options += [f"--migration-on-error={'guest-error' if mode.forgives else 'abort'}"] if tools.can_save else []
    options += [f"--thread-pool-size={mode.at_once}"] if mode.at_once else []
    command = [sys.executable, "-I", "-S", "-c", _ENTER, str(ready), str(go), tools.virtiofsd, f"--fd={listener}"]
    try:
        process = subprocess.Popen(
            [*entering, *command, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[ready, go, listener],
            start_new_session=True,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
        )
    except BaseException:
        os.close(told)
        os.close(going)
        raise
    finally:
        os.close(ready)
        os.close(go)
    return process, told, going
