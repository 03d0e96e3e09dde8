"""How the zygote of each language is started, from what the guest's own archive holds. Nothing is written to the disk.

A zygote in Python (for Python and WASM) is started from the archive itself. A Node zygote reads its program from its
control socket and loads its addon from a file without a name, so that no other program inside can change either.
"""

# pathlib is too slow to import here

from __future__ import annotations

import os
import sys

from freehold.guest.isolates.package import find_package, find_wasmtime
from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zipimport import zipimporter

ARCHIVE = "/opt/freehold/guest.pyz"
NODE_PLACES = (b"/opt/agents/.node/bin/node", b"/usr/local/bin/node", b"/usr/bin/node")
NODE_OPTIONS = (
    "--v8-pool-size=0",
    "--single-threaded",
    "--max-semi-space-size=2",
    "--no-warnings",
    "--experimental-vm-modules",
)
# The first packet on descriptor 0 is the program. It loads its addon from descriptor 1.
NODE_START = (
    "const packet=Buffer.alloc(1<<18),size=require('node:fs').readSync(0,packet);"
    "new Function('require',packet.toString('utf8',0,size))(require)"
)
NODE_PROGRAM = ("es_modules.js", "packages.js", "zygote.js")
PYTHON_START = "import sys,zipimport;exec(zipimport.zipimporter(sys.argv[1]).get_code('__main__'))"
LANGUAGES = ("python", "javascript", "typescript", "wasm")


def open_archive() -> zipimporter:
    import zipimport

    path = sys.argv[0] if sys.argv[0].endswith(".pyz") else ARCHIVE
    return zipimport.zipimporter(path)


class ZygoteProgram:
    """A command, its variables, an addon that becomes its descriptor 1, and what to send before the first request."""

    def __init__(self, language: str, packages: tuple[str, ...]) -> None:
        folders = {name: find_package(language, name) for name in packages}
        self.environment: dict[str, str] = {}
        self.addon: bytes | None = None
        self.packets: list[bytes] = []
        archive = open_archive()
        if language == "javascript":
            self.command = [os.fsdecode(find_node()), *NODE_OPTIONS, "-e", NODE_START, "--", *packages]
            self.environment = {"NODE_PATH": ":".join(folders.values())}
            self.addon = _read(archive, "isolates/fork.node")
            self.packets = [b"".join(_read(archive, f"isolates/{name}") for name in NODE_PROGRAM)]
        else:
            if language == "wasm":
                folders["wasmtime"] = find_wasmtime()
            found = [f"{name}={folder}" for name, folder in folders.items()]
            self.command = [sys.executable, "-I", "-c", PYTHON_START, archive.archive, "--zygote", language, *found]
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
