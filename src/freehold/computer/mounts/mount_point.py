"""The folder at which a remote mount appears, and the mount itself.

The computer binds the folder before there is a mount on it. What is mounted on it later, and mounted again after a
helper has died, reaches the running computer because the folder is a *shared* mount: the kernel repeats in every bind of
it what happens to it. While nothing is mounted, the folder is closed to everybody, so that nobody mistakes it for an
empty one.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from freehold.computer.walls.mount_table import MountEntry, read_mounts
from freehold.errors import FreeholdError

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_PRIVATE, MS_SHARED = 0x1, 0x2, 0x4, 0x1000, 0x40000, 0x100000
MNT_DETACH, UMOUNT_NOFOLLOW = 0x2, 0x8
FUSE_DEVICE = Path("/dev/fuse")
FUSERMOUNT_TIMEOUT = 10.0

_libc = ctypes.CDLL(None, use_errno=True)


class MountPoint:
    """One folder. Root mounts by itself; everybody else by the system's `fusermount3`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Make the folder, empty and shared. Ends whatever an earlier run left. Raises `computer.no-fuse`."""
        self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.remove()
        self.folder.mkdir(mode=0)
        self.folder.chmod(0)
        if os.geteuid() == 0:
            _mount(str(self.folder), self.folder, None, MS_BIND)
            # A group of its own: what is mounted here must not also appear below, in the file system that holds it.
            _mount(None, self.folder, None, MS_PRIVATE)
            _mount(None, self.folder, None, MS_SHARED)
        elif not (holding := _find_mount_of(self.folder)).is_shared:
            raise FreeholdError(
                "computer.no-fuse",
                f"What is mounted at {self.folder} would not reach the computer: its file system is not a shared mount",
                hint=f"As root: mount --make-shared {holding.place}, or start Freehold as root",
            )

    def mount(self, *, uid: int, writable: bool) -> int:
        """Mount a file system of which the returned descriptor is the device. Replaces the one that is mounted."""
        self.unmount()
        if os.geteuid() != 0:
            try:
                return self._mount_by_program(writable)
            except BaseException:
                self.unmount()
                raise
        try:
            device = os.open(FUSE_DEVICE, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise no_fuse(f"{FUSE_DEVICE} cannot be opened: {error.strerror}") from None
        try:
            options = f"fd={device},rootmode=40000,user_id={uid},group_id={uid},allow_other,default_permissions"
            flags = MS_NOSUID | MS_NODEV | (0 if writable else MS_RDONLY)
            _mount("freehold", self.folder, "fuse", flags, options)
        except BaseException:
            os.close(device)
            raise
        return device

    def unmount(self) -> None:
        """Take off the file system, but not the shared folder below it. Idempotent."""
        for _ in range(8):
            kinds = [mount.kind for mount in read_mounts() if mount.place == str(self.folder)]
            if not kinds or not kinds[-1].startswith("fuse"):
                if os.geteuid() != 0:
                    with contextlib.suppress(FileNotFoundError):
                        self.folder.chmod(0)  # it was opened for fusermount3
                return
            self._detach()

    def remove(self) -> None:
        """Idempotent."""
        for _ in range(8):
            if not any(mount.place == str(self.folder) for mount in read_mounts()):
                break
            self._detach()
        with contextlib.suppress(FileNotFoundError):
            self.folder.rmdir()

    def _detach(self) -> None:
        if os.geteuid() == 0:
            _libc.umount2(os.fsencode(self.folder), MNT_DETACH | UMOUNT_NOFOLLOW)
        elif shutil.which("fusermount3"):
            _run_fusermount(["-u", "-z", "--", self.folder])

    def _mount_by_program(self, writable: bool) -> int:
        options = f"fsname=freehold,nosuid,nodev,default_permissions,{'rw' if writable else 'ro'}"
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.folder.chmod(0o700)  # fusermount3 refuses a folder that its caller cannot write to
            done = _run_fusermount(["-o", options, "--", self.folder], theirs.fileno())
            if done.returncode:
                raise no_fuse(done.stderr.decode(errors="replace").strip()[:300] or "fusermount3 failed")
            # From here on, every look at the folder waits until somebody answers at the device.
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        return descriptors[0]


class MountPoints:
    """The mount points of a computer, one for each remote mount, by its number in the manifest."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def lock(self) -> Path:
        return self._root.with_name(f"{self._root.name}.lock")

    def folder(self, number: int) -> Path:
        return self._root / str(number)

    def prepare(self, numbers: Iterable[int]) -> None:
        """Before the first computer starts. Raises `computer.no-fuse`."""
        self.remove()
        for number in numbers:
            MountPoint(self.folder(number)).prepare()

    def remove(self) -> None:
        """Also their folder. Idempotent."""
        for found in self._list():
            MountPoint(found).remove()
        with contextlib.suppress(FileNotFoundError):
            self._root.rmdir()

    @contextlib.contextmanager
    def held_empty(self) -> Iterator[None]:
        """Nothing is mounted while this lasts, so that a computer that starts binds the folders and not what is on them.

        Blocking. The program of the mounts mounts them again afterwards.
        """
        with hold_mounts(self.lock):
            for found in self._list():
                MountPoint(found).unmount()
            yield

    def _list(self) -> list[Path]:
        return list(self._root.iterdir()) if self._root.is_dir() else []


def check_fuse() -> None:
    """Raise `computer.no-fuse` if this machine cannot mount what a program shows."""
    if not FUSE_DEVICE.exists():
        raise no_fuse(f"there is no {FUSE_DEVICE}")
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        raise no_fuse("fusermount3 is not installed")


def no_fuse(why: str) -> FreeholdError:
    """What to do where file systems of programs (FUSE) are not allowed."""
    return FreeholdError(
        "computer.no-fuse",
        f"Remote mounts need FUSE: {why}",
        hint="apt install fuse3 and modprobe fuse; in a container add --device /dev/fuse --cap-add SYS_ADMIN",
        kind="unavailable",
    )


@contextlib.contextmanager
def hold_mounts(lock: Path) -> Iterator[None]:
    """Nothing is mounted by another process while this lasts. Blocking."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _mount(source: str | None, target: Path, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        raise no_fuse(f"{kind or 'a shared folder'} cannot be mounted at {target}: {os.strerror(ctypes.get_errno())}")


def _run_fusermount(words: list[str | Path], answer: int | None = None) -> "subprocess.CompletedProcess[bytes]":
    """`answer` is a socket that gets the device. Raises `computer.no-fuse`."""
    program = shutil.which("fusermount3")
    if program is None:
        raise no_fuse("fusermount3 is not installed")
    environment = {"PATH": "/usr/bin:/bin"}
    if answer is not None:
        environment["_FUSE_COMMFD"] = str(answer)
    try:
        return subprocess.run(
            [program, *words],
            env=environment,
            pass_fds=[] if answer is None else [answer],
            capture_output=True,
            timeout=FUSERMOUNT_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise no_fuse(f"fusermount3 did not end within {FUSERMOUNT_TIMEOUT:g} s") from None


def _find_mount_of(folder: Path) -> MountEntry:
    """The mount that holds a folder."""
    holding = [mount for mount in read_mounts() if folder.is_relative_to(mount.place)]
    return max(reversed(holding), key=lambda mount: len(mount.place))
