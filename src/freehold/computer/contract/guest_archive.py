"""The guest packed into one file. The build is reproducible: the same sources and Python give the same bytes.

All modules are bundled into one, because searching an archive for many modules takes longer than running them. The
bundle is there twice: compiled for the Python of this machine, which starts three times as fast, and as source code for
any other Python. What isolates need besides is in the archive too and is read at their first use.
"""

import hashlib
import io
import json
import marshal
import os
import subprocess
import zipfile
from functools import cache
from pathlib import Path

from freehold.computer.contract import isolate_filter
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.contract.isolate_filter import compile_isolate_filters
from freehold.errors import FreeholdError

_SOURCES = Path(__file__).resolve().parents[2] / "guest"
_ISOLATE_FILES = ("zygote.js", "fork.node")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BUNDLE = """
import sys
from _frozen_importlib import ModuleSpec


class Bundle:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in MODULES:
            return ModuleSpec(name, Bundle, is_package=name in PACKAGES)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(UNPACK(MODULES[module.__name__]), module.__dict__)


PACKAGES = ("freehold", "freehold.guest", "freehold.guest.isolates")
sys.meta_path.insert(0, Bundle)
if "--zygote" in sys.argv:
    from freehold.guest.isolates.start import main
else:
    from freehold.guest.guest import main

main()
"""
_COMPILE = """
import importlib.util, marshal, sys
bundle, modules = marshal.loads(sys.stdin.buffer.read())
codes = {name: marshal.dumps(compile(text, name, "exec", dont_inherit=True, optimize=2)) for name, text in modules.items()}
whole = "from marshal import loads as UNPACK\\nMODULES = " + repr(codes) + bundle
code = marshal.dumps(compile(whole, "guest", "exec", dont_inherit=True, optimize=2))
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)
"""


def read_sources() -> dict[str, str]:
    """The source of every guest module, by its dotted name."""
    sources = {"freehold": ""}
    for source in sorted(_SOURCES.rglob("*.py")):
        parts = [*source.relative_to(_SOURCES).parent.parts, source.stem]
        name = ".".join(["freehold.guest", *(part for part in parts if part != "__init__")])
        if source.stem != "__main__":
            sources[name] = source.read_text()
    return sources


def read_isolate_files() -> dict[str, bytes]:
    """What isolates need besides Python modules, by its name in the archive. The addon is missing if it was not built."""
    folder = _SOURCES / "isolates"
    return {f"isolates/{name}": (folder / name).read_bytes() for name in _ISOLATE_FILES if (folder / name).exists()}


def pack_guest(sources: dict[str, str], python: str = GUEST_PYTHON, files: dict[str, bytes] | None = None) -> bytes:
    """The archive. Not compressed, because unpacking would cost more time than it saves."""
    entries = {
        "__main__.py": f"UNPACK = lambda text: compile(text, 'guest', 'exec')\nMODULES = {sources!r}{_BUNDLE}".encode()
    }
    entries.update(read_isolate_files() if files is None else files)
    entries["isolates/closed.bpf"], entries["isolates/networked.bpf"] = compile_isolate_filters()
    compiled = _compile(sources, python)
    if compiled:
        entries["__main__.pyc"] = compiled
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return packed.getvalue()


def _compile(sources: dict[str, str], python: str) -> bytes:
    """The compiled bundle; empty if the host does not have that Python. The guest then starts from source code."""
    order = marshal.dumps((_BUNDLE, sources), 2)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _COMPILE], input=order, capture_output=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


@cache
def guest_archive() -> Path:
    """The packed guest on disk, readable by all users; written once for each content and Python."""
    sources, files = read_sources(), read_isolate_files()
    if os.geteuid() == 0:
        folder = Path("/run/freehold-guest")  # not in a private folder: the uid of the computer must read it
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"
    path = folder / f"guest-{_fingerprint(sources, files)}.pyz"
    try:
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pack_guest(sources, files=files))
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise FreeholdError(
            "computer.no-guest",
            f"The guest archive cannot be written to {folder}: {error.strerror}",
            hint="Make that folder writable",
        ) from error
    return path


def _fingerprint(sources: dict[str, str], files: dict[str, bytes]) -> str:
    digest = hashlib.sha256(json.dumps(sources).encode())
    for name, content in sorted({**files, "filter": Path(isolate_filter.__file__).read_bytes()}.items()):
        digest.update(f"{name}:{len(content)}:".encode() + content)
    try:
        python = Path(GUEST_PYTHON).resolve()
        found = python.stat()
        digest.update(f"{python}:{found.st_size}:{found.st_mtime_ns}".encode())
    except OSError:
        digest.update(b"no python")
    return digest.hexdigest()[:20]
