"""The guest packed into one file. The build is reproducible: the same sources and Python give the same bytes.

All modules are bundled into one, because searching an archive for many modules takes longer than running them. The
bundle is there twice: compiled for the Python of this machine, which starts three times as fast, and as source code for
any other Python.
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

from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.errors import FreeholdError

_SOURCES = Path(__file__).resolve().parents[2] / "guest"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BUNDLE = """
import sys
from _frozen_importlib import ModuleSpec


class Bundle:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in MODULES:
            return ModuleSpec(name, Bundle, is_package=name in ("freehold", "freehold.guest"))

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(UNPACK(MODULES[module.__name__]), module.__dict__)


sys.meta_path.insert(0, Bundle)
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
    for source in sorted(_SOURCES.glob("*.py")):
        name = "freehold.guest" if source.stem == "__init__" else f"freehold.guest.{source.stem}"
        if source.stem != "__main__":
            sources[name] = source.read_text()
    return sources


def pack_guest(sources: dict[str, str], python: str = GUEST_PYTHON) -> bytes:
    """The archive. Not compressed, because unpacking would cost more time than it saves."""
    entries = {
        "__main__.py": f"UNPACK = lambda text: compile(text, 'guest', 'exec')\nMODULES = {sources!r}{_BUNDLE}".encode()
    }
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
    sources = read_sources()
    if os.geteuid() == 0:
        folder = Path("/run/freehold-guest")  # not in a private folder: the uid of the computer must read it
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"
    path = folder / f"guest-{_fingerprint(sources)}.pyz"
    try:
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pack_guest(sources))
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise FreeholdError(
            "computer.no-guest",
            f"The guest archive cannot be written to {folder}: {error.strerror}",
            hint="Make that folder writable",
        ) from error
    return path


def _fingerprint(sources: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sources).encode())
    try:
        python = Path(GUEST_PYTHON).resolve()
        found = python.stat()
        digest.update(f"{python}:{found.st_size}:{found.st_mtime_ns}".encode())
    except OSError:
        digest.update(b"no python")
    return digest.hexdigest()[:20]
