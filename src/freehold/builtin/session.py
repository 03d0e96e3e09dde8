"""One session of the built-in agent: its folder, mode, conversation and background commands.

Two files: `ID.json` has the folder, mode and title; `ID.jsonl` has the messages, one a line, and is only appended to.
So the cost of a turn does not grow with the turns before it.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.builtin.conversation import Message, decode_message, decode_messages_of_0_1_0, encode_message
from freehold.builtin.jobs import Job
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.tool_call import MODES, Mode

if TYPE_CHECKING:
    import asyncio

_ID = re.compile(r"[0-9a-f]{32}")
_BEGIN_AGAIN = b'{"begin":"again"}\n'
"""A line before messages that replace all earlier ones."""


def data_folder() -> Path:
    return Path.home() / ".freehold"


@dataclass
class BuiltinSession:
    """Change `messages` only through `append` and `replace_messages`: they also write the file."""

    id: str
    cwd: Path
    mode: Mode = "ask"
    title: str | None = None
    messages: list[Message] = field(default_factory=list)
    servers: list[Json] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    turn: "asyncio.Task[Json] | None" = None

    def save(self) -> None:
        """Writes everything but the messages. Atomic: if the program ends during this, the previous file is intact."""
        place = _place(self.id, ".json")
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_suffix(".new")
        temporary.write_text(json.dumps({"cwd": str(self.cwd), "mode": self.mode, "title": self.title}))
        temporary.replace(place)

    def append(self, message: Message) -> None:
        if not self.messages:
            self.save()
        self.messages.append(message)
        self._write(_line(message))

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Another conversation in place of this one, as after a summary."""
        self.messages = list(messages)
        self._write(_BEGIN_AGAIN + b"".join(map(_line, messages)))

    def options(self) -> Json:
        """The options for the client."""
        modes = [{"id": mode, "name": name, "description": words} for mode, (name, words) in MODES.items()]
        return {"modes": {"currentModeId": self.mode, "availableModes": modes}}

    def resolve_path(self, path: str) -> tuple[Path, bool]:
        """The absolute path, and whether it is in the workspace after links are resolved."""
        place = Path(os.path.normpath(self.cwd / Path(path).expanduser()))
        return place, place.resolve().is_relative_to(self.cwd.resolve())

    def _write(self, data: bytes) -> None:
        place = _place(self.id, ".jsonl")
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab") as file:
            file.write(data)


def new_id() -> str:
    """As `uuid4().hex`, without the modules that `uuid` imports."""
    return os.urandom(16).hex()


def new_session(cwd: str, servers: list[Json]) -> BuiltinSession:
    return BuiltinSession(new_id(), _folder(cwd), servers=servers)


def load_session(name: str, cwd: str, servers: list[Json]) -> BuiltinSession:
    try:
        saved = json.loads(_place(name, ".json").read_bytes())
    except FileNotFoundError:
        raise RequestError(f"There is no session {name}", -32002) from None
    session = BuiltinSession(name, _folder(cwd), saved["mode"], saved["title"], servers=servers)
    if "messages" in saved:
        # Written by version 0.1.0, with the messages in this file.
        session.replace_messages(decode_messages_of_0_1_0(saved["messages"]))
        session.save()
    else:
        session.messages = _read_messages(_place(name, ".jsonl"))
    return session


def fork_session(name: str, cwd: str, servers: list[Json]) -> BuiltinSession:
    session = load_session(name, cwd, servers)
    session.id = new_id()
    session.save()
    session.replace_messages(session.messages)
    return session


def list_sessions() -> list[Json]:
    """The newest first."""
    rows: list[tuple[float, Json]] = []
    for place in (data_folder() / "sessions").glob("*.json"):
        saved = json.loads(place.read_bytes())
        messages = place.with_suffix(".jsonl")
        changed = (messages if messages.exists() else place).stat().st_mtime
        at = datetime.fromtimestamp(changed, UTC).isoformat()
        row = {"sessionId": place.stem, "cwd": saved["cwd"], "title": saved["title"], "updatedAt": at}
        rows.append((changed, row))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _line(message: Message) -> bytes:
    return json.dumps(encode_message(message), separators=(",", ":")).encode() + b"\n"


def _read_messages(place: Path) -> list[Message]:
    """All complete lines. A line that the program was writing when it ended is cut off, so that the next one is whole."""
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        return []
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(place, whole)
    messages: list[Message] = []
    for line in data[:whole].splitlines(keepends=True):
        if line == _BEGIN_AGAIN:
            messages.clear()
        else:
            messages.append(decode_message(json.loads(line)))
    return messages


def _place(name: str, suffix: str) -> Path:
    if not _ID.fullmatch(name):
        raise RequestError(f"{name[:80]!r} is not a session id", -32602)
    return data_folder() / "sessions" / f"{name}{suffix}"


def _folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise RequestError(f"{cwd!r} is not a folder", -32602)
    return folder
