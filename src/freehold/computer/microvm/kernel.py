"""The kernel of a virtual machine: where it is found, and which of its modules are loaded first."""

import lzma
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError

MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "virtiofs", "erofs")
HINT = "apt install linux-image-cloud-amd64, or use an image of freehold build that has a kernel"


@dataclass(frozen=True)
class VmKernel:
    """`image` is what the machine boots. `folder` holds its modules."""

    release: str
    image: Path
    folder: Path

    @property
    def modules(self) -> tuple[Path, ...]:
        """In the order in which they must be loaded. Reads many files."""
        return _order_modules(self.folder)


def find_kernel(folder: Path = Path("/")) -> VmKernel:
    """The newest kernel below `folder` (boot/vmlinuz-RELEASE, lib/modules/RELEASE). Raises `computer.no-isolation`."""
    found = sorted((folder / "boot").glob("vmlinuz-*"), key=lambda path: _version_key(path.name), reverse=True)
    for image in found:
        release = image.name.removeprefix("vmlinuz-")
        for modules in (folder / "lib/modules" / release, folder / "usr/lib/modules" / release):
            if modules.is_dir():
                return VmKernel(release, image, modules)
    raise FreeholdError(
        "computer.no-isolation", f"There is no kernel for a virtual machine in {folder / 'boot'}", hint=HINT
    )


def _version_key(name: str) -> list[int]:
    return [int(part) for part in "".join(one if one.isdigit() else " " for one in name).split()]


def _order_modules(folder: Path) -> tuple[Path, ...]:
    """Those in MODULES that are not built in, each after the modules that it needs."""
    files = {_module_name(path): path for path in sorted(folder.rglob("*.ko*"))}
    order: dict[str, Path] = {}

    def add(name: str) -> None:
        path = files.get(name)
        if path is None or name in order:
            return
        for needed in _read_dependencies(path):
            add(needed)
        order[name] = path

    for name in MODULES:
        add(name)
    return tuple(order.values())


def _module_name(path: Path) -> str:
    return path.name.split(".ko")[0].replace("-", "_")


def _read_dependencies(path: Path) -> list[str]:
    data = read_module(path)
    at = data.find(b"\0depends=")
    if at < 0:
        return []
    words = data[at + 9 : data.index(b"\0", at + 9)].decode(errors="replace")
    return [word.replace("-", "_") for word in words.split(",") if word]


def read_module(path: Path) -> bytes:
    """The module, unpacked. Raises `computer.no-isolation` for a packing that is not known here."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix != ".ko":
        raise FreeholdError("computer.no-isolation", f"{path} is packed in a way that cannot be read here", hint=HINT)
    return data
