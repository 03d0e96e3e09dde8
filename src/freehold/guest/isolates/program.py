"""How the zygote of each language is started, from what the guest's own archive holds. Nothing is written to the disk.

A zygote in Python (for Python and WASM) is started from the archive itself. A Node zygote reads its program from its
control socket and loads its addon from a file without a name, so that no other program inside can change either.
"""

# pathlib is too slow to import here

from __future__ import annotations

import os
import sys

from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zipimport import zipimporter

ARCHIVE = "/opt/freehold/guest.pyz"
PACKAGES = b"/opt/packages"
"""Each folder below is one package with what it needs, prepared for isolates: by the image, or as a mount."""
NODE_PLACES = (b"/opt/agents/.node/bin/node", b"/usr/local/bin/node", b"/usr/bin/node")
NODE_OPTIONS = ("--v8-pool-size=0", "--single-threaded", "--max-semi-space-size=2", "--no-warnings")
# The first packet on descriptor 0 is the program. It loads its addon from descriptor 1.
NODE_START = (
    "const packet=Buffer.alloc(1<<18),size=require('node:fs').readSync(0,packet);"
    "new Function('require',packet.toString('utf8',0,size))(require)"
)
PYTHON_START = "import sys,zipimport;exec(zipimport.zipimporter(sys.argv[1]).get_code('__main__'))"
LANGUAGES = ("python", "javascript", "typescript", "wasm")


def open_archive() -> zipimporter:
    import zipimport

    path = sys.argv[0] if sys.argv[0].endswith(".pyz") else ARCHIVE
    return zipimport.zipimporter(path)


class ZygoteProgram:
    """A command, an addon that becomes its descriptor 1, and the packets to send before the first request."""

    def __init__(self, language: str, packages: tuple[str, ...]) -> None:
        folders = [find_package(name) for name in packages]
        self.addon: bytes | None = None
        self.packets: list[bytes] = []
        archive = open_archive()
        if language == "javascript":
            self.command = [os.fsdecode(find_node()), *NODE_OPTIONS, "-e", NODE_START]
            self.addon = _read(archive, "isolates/fork.node")
            self.packets = [_read(archive, "isolates/zygote.js")]
        else:
            if language == "wasm":
                folders.append(find_wasmtime())
            self.command = [sys.executable, "-I", "-c", PYTHON_START, archive.archive, "--zygote", language, *folders]
        self.packets += [_read(archive, "isolates/closed.bpf"), _read(archive, "isolates/networked.bpf")]


def _read(archive: zipimporter, name: str) -> bytes:
    try:
        content = archive.get_data(name)
    except OSError:
        raise OperationError(
            "computer.no-isolates", f"The guest was packed without {name}, which isolates need"
        ) from None
    return content


def find_node() -> bytes:
    for path in NODE_PLACES:
        if os.access(path, os.X_OK):
            return path
    raise OperationError("computer.no-node", "Node.js is not installed in this computer")


def find_wasmtime() -> str:
    """The folder to import wasmtime from: a prepared package, or one of the computer's own Python."""
    for folder in (os.fsdecode(PACKAGES + b"/wasmtime"), *sys.path):
        if os.path.isdir(f"{folder}/wasmtime"):  # noqa: PTH112
            return folder
    raise OperationError("computer.no-wasmtime", "wasmtime, which runs WebAssembly, is not installed in this computer")


def find_package(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise OperationError("computer.no-package", f"{name!r} is not the name of a package")
    path = PACKAGES + b"/" + os.fsencode(name)
    if not os.path.isdir(path):  # noqa: PTH112
        found = ", ".join(sorted(map(os.fsdecode, _list(PACKAGES)))) or "none"
        raise OperationError(
            "computer.no-package", f"The package {name!r} is not prepared in this computer; it has {found}"
        )
    return os.fsdecode(path)


def _list(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
