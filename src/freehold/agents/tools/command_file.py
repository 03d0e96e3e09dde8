"""Writes the `freehold` command to where every agent finds it. The folder is read-only inside the computer."""

import importlib.resources
import json
import logging
from pathlib import Path

from freehold.agents.tools.tool import Json

FOLDER = ".tools"
log = logging.getLogger("freehold.agents.tools")


def write_command(agents: Path, tools: list[Json]) -> None:
    """Idempotent. A failure is only logged: agents still have the tools over MCP."""
    try:
        _write(agents / FOLDER, tools)
    except OSError as error:
        log.warning("the freehold command inside the computer could not be written", extra={"error": str(error)})


def _write(folder: Path, tools: list[Json]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    source = (importlib.resources.files("freehold.agents.tools") / "freehold_command.py").read_text()
    _replace_file(folder / "tools.json", json.dumps(tools, indent=1), 0o644)
    _replace_file(folder / "freehold", f"#!/usr/bin/python3\n{source}", 0o755)


def _replace_file(place: Path, text: str, mode: int) -> None:
    """Atomic: a program inside may be reading the file."""
    if place.exists() and place.read_text() == text:
        return
    temporary = place.with_name(f".{place.name}.new")
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(place)
