"""One conversation of this program's: where it works, how it asks, what was said, and what runs in its background."""

import json
import os
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freehold.builtin.jobs import Job
from freehold.builtin.step import MODES, Mode
from freehold.builtin.wire import Json, Refusal

if TYPE_CHECKING:
    import asyncio

_ID = re.compile(r"[0-9a-f]{32}")


def own_folder() -> Path:
    return Path.home() / ".freehold"


@dataclass
class Session:
    """`messages` is the model's own record of the conversation, as JSON; only a turn understands it."""

    id: str
    cwd: Path
    mode: Mode = "ask"
    title: str | None = None
    messages: list[Any] = field(default_factory=list)
    servers: list[Json] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    turn: "asyncio.Task[Json] | None" = None

    def save(self) -> None:
        """Whole or not at all: a session that is ended in the middle of it still has what was saved before."""
        place = _place(self.id)
        place.parent.mkdir(parents=True, exist_ok=True)
        kept = {"cwd": str(self.cwd), "mode": self.mode, "title": self.title, "messages": self.messages}
        beside = place.with_suffix(".new")
        beside.write_text(json.dumps(kept))
        beside.replace(place)

    def options(self) -> Json:
        """What a client can choose."""
        modes = [{"id": mode, "name": name, "description": words} for mode, (name, words) in MODES.items()]
        return {"modes": {"currentModeId": self.mode, "availableModes": modes}}

    def within(self, path: str) -> tuple[Path, bool]:
        """The file that a path means, and whether it lies in the workspace, links resolved."""
        place = Path(os.path.normpath(self.cwd / Path(path).expanduser()))
        return place, place.resolve().is_relative_to(self.cwd.resolve())


def new_session(cwd: str, servers: list[Json]) -> Session:
    return Session(uuid.uuid4().hex, _folder(cwd), servers=servers)


def load_session(name: str, cwd: str, servers: list[Json]) -> Session:
    try:
        kept = json.loads(_place(name).read_bytes())
        return Session(name, _folder(cwd), kept["mode"], kept["title"], kept["messages"], servers)
    except FileNotFoundError:
        raise Refusal(f"There is no session {name}", -32002) from None


def fork_session(name: str, cwd: str, servers: list[Json]) -> Session:
    session = load_session(name, cwd, servers)
    session.id = uuid.uuid4().hex
    session.save()
    return session


def list_sessions() -> list[Json]:
    """The newest first."""
    rows: list[tuple[float, Json]] = []
    for place in (own_folder() / "sessions").glob("*.json"):
        kept = json.loads(place.read_bytes())
        changed = place.stat().st_mtime
        at = datetime.fromtimestamp(changed, UTC).isoformat()
        row = {"sessionId": place.stem, "cwd": kept["cwd"], "title": kept["title"], "updatedAt": at}
        rows.append((changed, row))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _place(name: str) -> Path:
    if not _ID.fullmatch(name):
        raise Refusal(f"{name[:80]!r} is not the name of a session", -32602)
    return own_folder() / "sessions" / f"{name}.json"


def _folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise Refusal(f"{cwd!r} is not a folder", -32602)
    return folder
