"""Putting the `freehold` command where every agent finds it, and none can change it."""

import importlib.resources
import json
from pathlib import Path

from freehold.agents.tools.tool import Json

FOLDER = ".tools"


def place_command(agents: Path, tools: list[Json]) -> None:
    """Idempotent. Each file is replaced whole, for somebody inside may be reading it."""
    folder = agents / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    agents.chmod(0o755)
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
