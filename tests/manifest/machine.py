"""A machine for the rules to look at, and short ways to ask what is wrong with a text."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

from freehold.manifest.facts import MachineFacts
from freehold.manifest.loader import LoadedManifest, check_source
from freehold.manifest.problem import ManifestProblem
from freehold.manifest.reader import parse_source

GIB = 1024**3
FILE = Path("/home/owner/.local/share/freehold/freehold.toml")

LAPTOP = MachineFacts(
    home=FILE.parent,
    user_home=Path("/home/owner"),
    memory=16 * GIB,
    cpus=8,
    disk=200 * GIB,
    free_disk=100 * GIB,
    backends={
        "bubblewrap": "",
        "docker": "docker is not installed",
        "podman": "podman is not installed",
        "microvm": "QEMU is not installed",
    },
    environ={},
    is_root=False,
    today=datetime.date(2026, 11, 15),
    real=lambda path: Path(path.replace("~", "/home/owner", 1) if path.startswith("~") else path),
    exists=lambda path: "missing" not in str(path),
    is_socket=lambda path: path.name.endswith(".sock") and path.is_relative_to("/run"),
    history_size=lambda: 2 * GIB,
)


def look(text: str | bytes, environ: dict[str, str] | None = None, **changes: Any) -> LoadedManifest:
    """Check a text on the laptop, or on one that differs from it."""
    facts = replace(LAPTOP, environ=environ or {}, **changes)
    return check_source(parse_source(FILE, text.encode() if isinstance(text, str) else text), facts)


def only(loaded: LoadedManifest) -> ManifestProblem:
    """The one problem that there is."""
    assert len(loaded.problems) == 1, [f"{p.code} {p.message}" for p in loaded.problems]
    return loaded.problems[0]
