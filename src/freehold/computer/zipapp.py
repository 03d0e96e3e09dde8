"""The guest packed as one file, reproducibly: the same sources and the same Python give the same bytes.

It holds the sources, so that any Python can run it, and their compiled form for the Python of this machine, which starts
it three times as fast.
"""

import hashlib
import io
import json
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
_COMPILE = """
import importlib.util, json, marshal, sys
head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
sources = json.load(sys.stdin)
json.dump({name: (head + marshal.dumps(compile(text, name, "exec", dont_inherit=True, optimize=2))).hex() for name, text in sources.items()}, sys.stdout)
"""


def read_sources() -> dict[str, str]:
    sources = {"__main__.py": "from freehold.guest.guest import main\n\nmain()\n", "freehold/__init__.py": ""}
    for source in sorted(_SOURCES.glob("*.py")):
        if source.name != "__main__.py":
            sources[f"freehold/guest/{source.name}"] = source.read_text()
    return sources


def pack_guest(sources: dict[str, str], python: str = PYTHON) -> bytes:
    """The zipapp. Nothing is compressed: unpacking would cost more than the few pages it saves."""
    entries = {name: text.encode() for name, text in sources.items()}
    entries |= {f"{name}c": code for name, code in _compile(sources, python).items()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return packed.getvalue()


def _compile(sources: dict[str, str], python: str) -> dict[str, bytes]:
    """Nothing where that Python is not to be had on the host: the guest then starts from its sources."""
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _COMPILE],
            input=json.dumps(sources).encode(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return {name: bytes.fromhex(code) for name, code in json.loads(done.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}


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
