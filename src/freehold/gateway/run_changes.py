"""What a run has changed in its copy of a folder, and how that comes back into the workspace.

Files are read and written by the guests of the two computers. The host compares what they tell, and keeps contents.
"""

import difflib
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path

from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError
from freehold.slots.orchestrator.contract import FileChange
from freehold.slots.orchestrator.engine import ChangedFile, FileFacts

MAX_FILES = 2000
MAX_BYTES = 64 * 1024 * 1024
MAX_DIFF = 128 * 1024
MAX_WALKED = 200_000


async def read_facts(computer: Computer, folder: str) -> dict[str, FileFacts]:
    """Every file below a folder of the workspace, by its path in the workspace."""
    entries = await computer.files.walk(posixpath.join(WORKSPACE, folder), limit=MAX_WALKED)
    return {
        posixpath.normpath(posixpath.join(folder, entry.name)): FileFacts(
            entry.kind, entry.size, entry.mtime_ns, entry.mode & 0o7777
        )
        for entry in entries
        if entry.kind == "file"
    }


async def collect_changes(
    computer: Computer,
    folder: str,
    begin: Mapping[str, FileFacts],
    original: Mapping[str, FileFacts],
    room: Path,
) -> tuple[ChangedFile, ...]:
    """The files that are others than at the beginning, with their contents in the room. `original`: the owner's files.

    Raises `computer.too-big` when there is too much to keep.
    """
    now = await read_facts(computer, folder)
    wanted = sorted(path for path, facts in now.items() if begin.get(path) != facts)
    if len(wanted) > MAX_FILES or sum(now[path].size for path in wanted) > MAX_BYTES:
        raise FreeholdError(
            "computer.too-big",
            f"The run has changed {len(wanted)} files; {MAX_FILES} files with {MAX_BYTES // 1024**2} MiB can be taken back",
        )
    found = []
    for number, path in enumerate(wanted):
        content = await computer.files.read(posixpath.join(WORKSPACE, path), limit=MAX_BYTES)
        (room / str(number)).write_bytes(content)
        kind = "changed" if path in begin else "added"
        found.append(ChangedFile(path, kind, len(content), now[path].mode, str(number), original.get(path)))
    for path in sorted(set(begin) - set(now)):
        found.append(ChangedFile(path, "removed", 0, 0, None, original.get(path)))
    return tuple(found)


async def compare_changes(computer: Computer, changes: Sequence[ChangedFile], room: Path) -> tuple[FileChange, ...]:
    """Each change beside the owner's file as it is now."""
    found = []
    for change in changes:
        here = await _read_now(computer, change.path)
        conflict = _is_conflict(change, here)
        diff = None if conflict else await _show(computer, change, here, room)
        found.append(FileChange(change.path, change.kind, change.size, diff, conflict))
    return tuple(found)


async def apply_changes(computer: Computer, changes: Sequence[ChangedFile], room: Path) -> None:
    """Writes and removes files of the workspace. A file is replaced in one step."""
    for change in changes:
        path = posixpath.join(WORKSPACE, change.path)
        if change.content is None:
            await computer.files.remove(path, missing_ok=True)
        else:
            content = (room / change.content).read_bytes()
            await computer.files.write(path, content, mode=change.mode & 0o777, parents=True)


def _is_conflict(change: ChangedFile, here: FileFacts | None) -> bool:
    before = change.before
    return here is not None if before is None else here != before and not (here is None and change.content is None)


async def _read_now(computer: Computer, path: str) -> FileFacts | None:
    try:
        entry = await computer.files.stat(posixpath.join(WORKSPACE, path), follow=False)
    except FreeholdError as error:
        if error.code in ("files.not-found", "files.not-a-folder"):
            return None
        raise
    return FileFacts(entry.kind, entry.size, entry.mtime_ns, entry.mode & 0o7777)


async def _show(computer: Computer, change: ChangedFile, here: FileFacts | None, room: Path) -> str | None:
    """A unified diff; None where a side is large or not text."""
    old = new = b""
    if here is not None:
        if here.size > MAX_DIFF:
            return None
        old = await computer.files.read(posixpath.join(WORKSPACE, change.path), limit=MAX_DIFF)
    if change.content is not None:
        if change.size > MAX_DIFF:
            return None
        new = (room / change.content).read_bytes()
    try:
        sides = old.decode().splitlines(keepends=True), new.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    names = ("/dev/null" if here is None else f"a/{change.path}", "/dev/null" if not new else f"b/{change.path}")
    lines = difflib.unified_diff(*sides, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
