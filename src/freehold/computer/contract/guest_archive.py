"""The guest packed as one file, reproducibly: the same sources and the same Python give the same bytes.

All modules are bundled into one, since finding many of them in an archive would take longer than running them. It is
there twice: compiled for the Python of this machine, which starts it three times as fast, and as sources for any other.
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

from freehold.errors import FreeholdError

PYTHON = "/usr/bin/python3"
"""What runs the guest inside, where the host's /usr is shown."""

_SOURCES = Path(__file__).resolve().parent.parent / "guest"
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
    """Every module of the guest by its name."""
    sources = {"freehold": ""}
    for source in sorted(_SOURCES.glob("*.py")):
        name = "freehold.guest" if source.stem == "__init__" else f"freehold.guest.{source.stem}"
        if source.stem != "__main__":
            sources[name] = source.read_text()
    return sources


def pack_guest(sources: dict[str, str], python: str = PYTHON) -> bytes:
    """The zipapp. Nothing is compressed: unpacking would cost more than the few pages it saves."""
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
    """Nothing where that Python is not to be had on the host: the guest then starts from its sources."""
    order = marshal.dumps((_BUNDLE, sources), 2)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _COMPILE], input=order, capture_output=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


@cache
def guest_zipapp() -> Path:
    """The packed guest on disk, readable by all, written once for each content and Python."""
    sources = read_sources()
    if os.geteuid() == 0:
        folder = Path("/run/freehold-guest")  # not in a private folder: the uid that the computer runs as reads it too
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
            f"The guest cannot be written to {folder}: {error.strerror}",
            hint="Make that folder writable",
        ) from error
    return path


def _fingerprint(sources: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sources).encode())
    try:
        python = Path(PYTHON).resolve()
        found = python.stat()
        digest.update(f"{python}:{found.st_size}:{found.st_mtime_ns}".encode())
    except OSError:
        digest.update(b"no python")
    return digest.hexdigest()[:20]
