"""Files of a deployment on disk: written, or compared with what would be written."""

import difflib
from collections.abc import Mapping
from pathlib import Path

from freehold.errors import FreeholdError

MAX_SHOWN_LINES = 40
MERGED = (
    *(f"{name}.override.{ending}" for name in ("compose", "docker-compose") for ending in ("yaml", "yml")),
    *(f"{folder}*{kind}.d/*.conf" for folder in ("", "../") for kind in ("container", "volume", "network")),
)
"""What docker compose and podman join with the files of a folder by themselves."""


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Those that changed. A file is complete or as it was."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [name for name, text in files.items() if _read(folder / name) != text]
        for name in changed:
            _replace(folder / name, files[name])
    except OSError as error:
        raise FreeholdError(
            "deploy.not-writable",
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="Choose another folder",
        ) from error
    return [folder / name for name in changed]


def check_files(folder: Path, files: Mapping[str, str], command: str) -> None:
    """Raise `deploy.drifted`, with the lines that differ, or with files that an engine joins with these."""
    merged = [str(path) for pattern in MERGED for path in sorted(folder.glob(pattern))]
    if merged:
        raise FreeholdError(
            "deploy.drifted",
            f"The deployment is not what the manifest says: the engine joins it with {', '.join(merged)}",
            hint="Write in freehold.toml what these files change, and remove them",
        )
    shown: list[str] = []
    for name, text in files.items():
        found = _read(folder / name)
        if found != text:
            before, after = ([] if one is None else one.splitlines() for one in (found, text))
            shown += difflib.unified_diff(before, after, f"{folder / name}", "from the manifest", lineterm="", n=1)
    if shown:
        more = f"\n… {len(shown) - MAX_SHOWN_LINES} more lines" if len(shown) > MAX_SHOWN_LINES else ""
        raise FreeholdError(
            "deploy.drifted",
            "The deployment is not what the manifest says\n" + "\n".join(shown[:MAX_SHOWN_LINES]) + more,
            hint=f"Write it again: {command}",
        )


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.write_text(text)
    draft.chmod(0o644)  # the user of the container reads it
    draft.replace(path)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
