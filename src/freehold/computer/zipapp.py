"""The guest packed as one file, reproducibly: the same sources give the same bytes."""

import hashlib
import io
import os
import zipfile
from functools import cache
from pathlib import Path

from freehold.errors import FreeholdError

_SOURCES = Path(__file__).resolve().parent.parent / "guest"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack_guest() -> bytes:
    """The zipapp. Nothing is compressed: unpacking would cost more than the few pages it saves."""
    entries: dict[str, bytes] = {"freehold/__init__.py": b""}
    for source in sorted(_SOURCES.glob("*.py")):
        entries[f"freehold/guest/{source.name}"] = source.read_bytes()
    entries["__main__.py"] = b"from freehold.guest.guest import main\n\nmain()\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return packed.getvalue()


@cache
def guest_zipapp() -> Path:
    """The packed guest on disk, readable by all, written once for each content."""
    content = pack_guest()
    if os.geteuid() == 0:
        folder = Path("/run/freehold-guest")  # not in a private folder: the uid that the computer runs as reads it too
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"
    path = folder / f"guest-{hashlib.sha256(content).hexdigest()[:16]}.pyz"
    try:
        if path.exists() and path.read_bytes() == content:
            return path
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise FreeholdError(
            "computer.no-guest",
            f"The guest cannot be written to {folder}: {error.strerror}",
            hint="Make that folder writable",
        ) from error
    return path
