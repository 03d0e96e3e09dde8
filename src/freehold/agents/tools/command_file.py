"""Putting the `freehold` command where every agent finds it, and none can change it."""

import importlib.resources
import json
import logging
from pathlib import Path

from freehold.agents.tools.tool import Json

FOLDER = ".tools"
log = logging.getLogger("freehold.agents.tools")


def place_command(agents: Path, tools: list[Json]) -> None:
    """Idempotent. A disk that takes no more is no reason not to start: agents have the tools over MCP all the same."""
    try:
        _place(agents / FOLDER, tools)
    except OSError as error:
        log.warning("the freehold command inside the computer could not be written", extra={"error": str(error)})


def _place(folder: Path, tools: list[Json]) -> None:
    """Each file is replaced whole, for somebody inside may be reading it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    source = (importlib.resources.files("freehold.agents.tools") / "inside.py").read_text()
    _put(folder / "tools.json", json.dumps(tools, indent=1), 0o644)
    _put(folder / "freehold", f"#!/usr/bin/python3\n{source}", 0o755)


def _put(place: Path, text: str, mode: int) -> None:
    if place.exists() and place.read_text() == text:
        return
    beside = place.with_name(f".{place.name}.new")
    beside.write_text(text)
    beside.chmod(mode)
    beside.replace(place)
