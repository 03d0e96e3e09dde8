"""One session of the built-in agent: its folder, mode, conversation and background commands. Saved as a JSON file."""

import json
import os
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freehold.builtin.jobs import Job
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.tool_call import MODES, Mode

if TYPE_CHECKING:
    import asyncio

_ID = re.compile(r"[0-9a-f]{32}")


def data_folder() -> Path:
    return Path.home() / ".freehold"


@dataclass
class BuiltinSession:
    """`messages` is the conversation in the format of the model library, as JSON. Only `turn` reads it."""

    id: str
    cwd: Path
    mode: Mode = "ask"
    title: str | None = None
    messages: list[Any] = field(default_factory=list)
    servers: list[Json] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    turn: "asyncio.Task[Json] | None" = None

    def save(self) -> None:
        """Atomic: if the program ends during this, the previous file is intact."""
        place = _place(self.id)
        place.parent.mkdir(parents=True, exist_ok=True)
        saved = {"cwd": str(self.cwd), "mode": self.mode, "title": self.title, "messages": self.messages}
        temporary = place.with_suffix(".new")
        temporary.write_text(json.dumps(saved))
        temporary.replace(place)

    def options(self) -> Json:
        """The options for the client."""
        modes = [{"id": mode, "name": name, "description": words} for mode, (name, words) in MODES.items()]
        return {"modes": {"currentModeId": self.mode, "availableModes": modes}}

    def resolve_path(self, path: str) -> tuple[Path, bool]:
        """The absolute path, and whether it is in the workspace after links are resolved."""
        place = Path(os.path.normpath(self.cwd / Path(path).expanduser()))
        return place, place.resolve().is_relative_to(self.cwd.resolve())


def new_session(cwd: str, servers: list[Json]) -> BuiltinSession:
    return BuiltinSession(uuid.uuid4().hex, _folder(cwd), servers=servers)


def load_session(name: str, cwd: str, servers: list[Json]) -> BuiltinSession:
    try:
        saved = json.loads(_place(name).read_bytes())
        return BuiltinSession(name, _folder(cwd), saved["mode"], saved["title"], saved["messages"], servers)
    except FileNotFoundError:
        raise RequestError(f"There is no session {name}", -32002) from None


def fork_session(name: str, cwd: str, servers: list[Json]) -> BuiltinSession:
    session = load_session(name, cwd, servers)
    session.id = uuid.uuid4().hex
    session.save()
    return session


def list_sessions() -> list[Json]:
    """The newest first."""
    rows: list[tuple[float, Json]] = []
    for place in (data_folder() / "sessions").glob("*.json"):
        saved = json.loads(place.read_bytes())
        changed = place.stat().st_mtime
        at = datetime.fromtimestamp(changed, UTC).isoformat()
        row = {"sessionId": place.stem, "cwd": saved["cwd"], "title": saved["title"], "updatedAt": at}
        rows.append((changed, row))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _place(name: str) -> Path:
    if not _ID.fullmatch(name):
        raise RequestError(f"{name[:80]!r} is not a session id", -32602)
    return data_folder() / "sessions" / f"{name}.json"


def _folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise RequestError(f"{cwd!r} is not a folder", -32602)
    return folder
