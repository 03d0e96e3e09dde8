"""read, write, edit, list."""

from pathlib import Path

from pydantic_ai import RunContext

from freehold.builtin.step import Trouble, diff
from freehold.builtin.work import Work

MAX_READ = 2 * 1024 * 1024
MAX_LINE = 2000
MAX_ENTRIES = 500


async def read(ctx: RunContext[Work], path: str, offset: int = 1, limit: int = 1500) -> str:
    """Read a text file. Each line comes with its number and a tab before it.

    Args:
        path: The file, relative to the workspace or absolute.
        offset: The first line to read, counted from 1.
        limit: How many lines to read at most.
    """
    async with ctx.deps.step(ctx.tool_call_id, f"Read {path}", "read", {"path": path}, [path]) as step:
        place, _ = ctx.deps.session.within(path)
        lines = read_text(place).splitlines()
        chosen = lines[max(offset, 1) - 1 :][: max(limit, 1)]
        numbered = [f"{number}\t{line[:MAX_LINE]}" for number, line in enumerate(chosen, max(offset, 1))]
        left = len(lines) - (max(offset, 1) - 1) - len(chosen)
        if left > 0:
            numbered.append(f"[{left} more lines; read on with offset={max(offset, 1) + len(chosen)}]")
        return await step.end("\n".join(numbered) or "[the file is empty]")


async def write(ctx: RunContext[Work], path: str, content: str) -> str:
    """Write a whole file, new or not. To change a part of a file, use edit or apply_patch.

    Args:
        path: The file, relative to the workspace or absolute.
        content: All of its new text.
    """
    async with ctx.deps.step(ctx.tool_call_id, f"Write {path}", "edit", {"path": path}, [path]) as step:
        place, inside = ctx.deps.session.within(path)
        old = read_text(place) if place.exists() else None
        shown = [diff(str(place), old, content)]
        await step.permit(shown, inside=inside)
        replace_text(place, old, content)
        await step.end("", content=shown)
        return f"Wrote {path} ({len(content.splitlines())} lines)"


async def edit(ctx: RunContext[Work], path: str, old: str, new: str, every: bool = False) -> str:
    """Replace a piece of a file that matches exactly, spaces included.

    Args:
        path: The file, relative to the workspace or absolute.
        old: The text to replace. It must be in the file exactly once, unless every is true.
        new: The text that takes its place.
        every: Replace every place where it is found.
    """
    async with ctx.deps.step(ctx.tool_call_id, f"Edit {path}", "edit", {"path": path}, [path]) as step:
        place, inside = ctx.deps.session.within(path)
        text = read_text(place)
        found = text.count(old) if old else 0
        if not found:
            raise Trouble(f"{path} does not have that text. Read it again and give the text exactly as it is there.")
        if found > 1 and not every:
            raise Trouble(f"{path} has that text {found} times. Give more of what is around it, or set every.")
        changed = text.replace(old, new)
        shown = [diff(str(place), text, changed)]
        await step.permit(shown, inside=inside)
        replace_text(place, text, changed)
        await step.end("", content=shown)
        return f"Replaced {found} place{'s' if found > 1 else ''} in {path}"


async def list_folder(ctx: RunContext[Work], path: str = ".", depth: int = 2) -> str:
    """List a folder. Folders end with a slash; what is in .git and node_modules is left out.

    Args:
        path: The folder, relative to the workspace or absolute.
        depth: How many levels to go down.
    """
    async with ctx.deps.step(ctx.tool_call_id, f"List {path}", "read", {"path": path}, [path]) as step:
        place, _ = ctx.deps.session.within(path)
        if not place.is_dir():
            raise Trouble(f"{path} is not a folder")
        rows: list[str] = []
        _gather(place, "", depth, rows)
        if len(rows) > MAX_ENTRIES:
            rows = [*rows[:MAX_ENTRIES], f"[{len(rows) - MAX_ENTRIES} more; list a folder in it]"]
        return await step.end("\n".join(rows) or "[the folder is empty]")


def _gather(folder: Path, before: str, depth: int, rows: list[str]) -> None:
    for entry in sorted(folder.iterdir()):
        down = entry.is_dir() and not entry.is_symlink()
        rows.append(f"{before}{entry.name}{'/' if down else ''}")
        if down and depth > 1 and entry.name not in (".git", "node_modules") and len(rows) <= 10 * MAX_ENTRIES:
            _gather(entry, f"{before}{entry.name}/", depth - 1, rows)


def read_text(place: Path) -> str:
    """The file's text as it is, line ends included. Raises `Trouble` for what is none."""
    try:
        if place.stat().st_size > MAX_READ:
            raise Trouble(f"{place} has more than {MAX_READ} bytes; look at parts of it with run")
        return place.read_bytes().decode()
    except UnicodeDecodeError:
        raise Trouble(f"{place} is not text") from None
    except OSError as error:
        raise Trouble(f"{place}: {error.strerror}") from None


def replace_text(place: Path, old: str | None, new: str) -> None:
    """What was shown is what is written: refuses a file that changed since `old` was read from it."""
    now = read_text(place) if place.exists() else None
    if now != old:
        raise Trouble(f"{place} has changed in the meantime; read it again")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(new.encode())
    except OSError as error:
        raise Trouble(f"{place}: {error.strerror}") from None
