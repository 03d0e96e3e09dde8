"""The first files of a virtual machine: a shell script that loads modules, and the program that becomes its pid 1."""

import hashlib
import os
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.microvm.kernel import VmKernel, read_module
from freehold.errors import FreeholdError

BUSYBOX = ("bin/busybox", "usr/bin/busybox")
INIT = Path(__file__).with_name("vm_init.py")
_PT_INTERP = 3

# The new root has just what Python needs; vm_init.py builds the root that the agent sees.
_SCRIPT = f"""#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read module; do $b insmod /modules/$module; done < /modules/order
$b mount -t tmpfs -o mode=0755,size=8m new /new
$b mkdir -p /new/boot/shared /new/boot/image /new/proc /new/sys /new/dev /new/usr
$b mount -t virtiofs shared /new/boot/shared
base=/new/boot/image
if [ -e /dev/vda ]; then $b mount -t erofs -o ro /dev/vda $base; else $b mount -t virtiofs -o ro system $base; fi
$b mount -o bind $base/usr /new/usr
for name in bin sbin lib lib32 lib64 libx32; do [ -L $base/$name ] && $b cp -d $base/$name /new/$name; done
$b cp /init.py /new/boot/init.py
for name in proc sys dev; do $b mount -o move /$name /new/$name; done
exec $b switch_root /new {GUEST_PYTHON} -I -S -E /boot/init.py
"""


def find_busybox(system: Path = Path("/")) -> Path:
    """A busybox below `system` that needs no libraries. Raises `computer.no-isolation`."""
    for name in BUSYBOX:
        path = system / name
        if path.is_file() and _is_static(path.read_bytes()):
            return path
    raise FreeholdError("computer.no-isolation", "A static busybox is missing", hint="apt install busybox-static")


def _is_static(program: bytes) -> bool:
    if program[:4] != b"\x7fELF" or program[4] != 2:
        return False
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return all(struct.unpack_from("<I", program, start + size * number)[0] != _PT_INTERP for number in range(count))


def write_initramfs(kernel: VmKernel, busybox: Path) -> Path:
    """The archive on disk. The same inputs give the same bytes."""
    inputs = (kernel.folder, kernel.image, busybox)
    own = hashlib.sha256(_SCRIPT.encode() + INIT.read_bytes()).hexdigest()
    return _write_once("initramfs", fingerprint_files(inputs, own), lambda: pack_initramfs(kernel, busybox))


def copy_kernel(kernel: VmKernel) -> Path:
    """A copy of the kernel that QEMU's user may read: some systems keep it from everybody but root."""
    return _write_once("kernel", fingerprint_files((kernel.image,), ""), kernel.image.read_bytes)


def fingerprint_files(paths: Iterable[Path], more: str) -> str:
    """Changes when one of the files is replaced or written. The content is not read."""
    words = [more]
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            words.append(f"{path} -")
        else:
            words.append(
                f"{path} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
            )
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _write_once(name: str, fingerprint: str, make: Callable[[], bytes]) -> Path:
    """A file in the cache that all users may read, written once for each fingerprint."""
    path = cache_folder() / f"{name}-{fingerprint[:20]}"
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        draft.write_bytes(make())
        draft.chmod(0o444)
        draft.replace(path)
    return path


def cache_folder() -> Path:
    if os.geteuid() == 0:
        folder = Path("/var/cache/freehold")
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return folder


def pack_initramfs(kernel: VmKernel, busybox: Path) -> bytes:
    archive = CpioArchive()
    for name in ("bin", "dev", "modules", "new", "proc", "sys"):
        archive.add(name, mode=0o40755)
    archive.add("bin/busybox", busybox.read_bytes())
    archive.add("init", _SCRIPT.encode())
    archive.add("init.py", INIT.read_bytes(), 0o100644)
    modules = kernel.modules
    names = [f"{path.name.split('.ko')[0]}.ko" for path in modules]
    archive.add("modules/order", "".join(f"{name}\n" for name in names).encode(), 0o100644)
    for name, path in zip(names, modules, strict=True):
        archive.add(f"modules/{name}", read_module(path), 0o100644)
    return archive.close()


class CpioArchive:
    """An archive in the one format that the kernel unpacks: "newc"."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._number = 0

    def add(self, name: str, content: bytes = b"", mode: int = 0o100755) -> None:
        self._number += 1
        words = (self._number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name.encode()) + 1, 0)
        self._data += b"070701" + b"".join(b"%08X" % word for word in words) + name.encode() + b"\0"
        self._pad()
        self._data += content
        self._pad()

    def _pad(self) -> None:
        self._data += b"\0" * (-len(self._data) % 4)

    def close(self) -> bytes:
        self.add("TRAILER!!!", mode=0)
        return bytes(self._data)
