"""read, write, edit, list."""

from pathlib import Path

from freehold.builtin.tool_call import ToolError, make_diff
from freehold.builtin.tool_context import ToolContext

MAX_READ = 2 * 1024 * 1024
MAX_LINE = 2000
MAX_ENTRIES = 500


async def read(ctx: ToolContext, path: str, offset: int = 1, limit: int = 1500) -> str:
    """Read a text file. Each line comes with its number and a tab before it.

    Args:
        path: The file, relative to the workspace or absolute.
        offset: The first line to read, counted from 1.
        limit: How many lines to read at most.
    """
    async with ctx.start_call(f"Read {path}", "read", {"path": path}, [path]) as tool_call:
        place, _ = ctx.session.resolve_path(path)
        lines = read_text(place).splitlines()
        chosen = lines[max(offset, 1) - 1 :][: max(limit, 1)]
        numbered = [f"{number}\t{line[:MAX_LINE]}" for number, line in enumerate(chosen, max(offset, 1))]
        left = len(lines) - (max(offset, 1) - 1) - len(chosen)
        if left > 0:
            numbered.append(f"[{left} more lines; continue with offset={max(offset, 1) + len(chosen)}]")
        return await tool_call.end("\n".join(numbered) or "[the file is empty]")


async def write(ctx: ToolContext, path: str, content: str) -> str:
    """Write a whole file, new or not. To change a part of a file, use edit or apply_patch.

    Args:
        path: The file, relative to the workspace or absolute.
        content: The complete new text.
    """
    async with ctx.start_call(f"Write {path}", "edit", {"path": path}, [path]) as tool_call:
        place, inside = ctx.session.resolve_path(path)
        old = read_text(place) if place.exists() else None
        shown = [make_diff(str(place), old, content)]
        await tool_call.ask_permission(shown, inside=inside)
        replace_text(place, old, content)
        await tool_call.end("", content=shown)
        return f"Wrote {path} ({len(content.splitlines())} lines)"


async def edit(ctx: ToolContext, path: str, old: str, new: str, every: bool = False) -> str:
    """Replace a piece of a file that matches exactly, spaces included.

    Args:
        path: The file, relative to the workspace or absolute.
        old: The text to replace. It must be in the file exactly once, unless every is true.
        new: The new text.
        every: Replace every occurrence.
    """
    async with ctx.start_call(f"Edit {path}", "edit", {"path": path}, [path]) as tool_call:
        place, inside = ctx.session.resolve_path(path)
        text = read_text(place)
        found = text.count(old) if old else 0
        if not found:
            raise ToolError(
                f"{path} does not contain that text. Read it again and give the text exactly as it is in the file."
            )
        if found > 1 and not every:
            raise ToolError(f"{path} contains that text {found} times. Give more of the text around it, or set every.")
        changed = text.replace(old, new)
        shown = [make_diff(str(place), text, changed)]
        await tool_call.ask_permission(shown, inside=inside)
        replace_text(place, text, changed)
        await tool_call.end("", content=shown)
        return f"Replaced {found} occurrence{'s' if found > 1 else ''} in {path}"


async def list_folder(ctx: ToolContext, path: str = ".", depth: int = 2) -> str:
    """List a folder. Folders end with a slash. The content of .git and node_modules is left out.

    Args:
        path: The folder, relative to the workspace or absolute.
        depth: How many levels to go down.
    """
    async with ctx.start_call(f"List {path}", "read", {"path": path}, [path]) as tool_call:
        place, _ = ctx.session.resolve_path(path)
        if not place.is_dir():
            raise ToolError(f"{path} is not a folder")
        rows: list[str] = []
        _gather(place, "", depth, rows)
        if len(rows) > MAX_ENTRIES:
            rows = [*rows[:MAX_ENTRIES], f"[{len(rows) - MAX_ENTRIES} more; list a folder below it]"]
        return await tool_call.end("\n".join(rows) or "[the folder is empty]")


def _gather(folder: Path, before: str, depth: int, rows: list[str]) -> None:
    for entry in sorted(folder.iterdir()):
        down = entry.is_dir() and not entry.is_symlink()
        rows.append(f"{before}{entry.name}{'/' if down else ''}")
        if down and depth > 1 and entry.name not in (".git", "node_modules") and len(rows) <= 10 * MAX_ENTRIES:
            _gather(entry, f"{before}{entry.name}/", depth - 1, rows)


def read_text(place: Path) -> str:
    """The text of a file with its line ends unchanged. Raises `ToolError` when it is not text or too large."""
    try:
        if place.stat().st_size > MAX_READ:
            raise ToolError(f"{place} has more than {MAX_READ} bytes; read parts of it with run")
        return place.read_bytes().decode()
    except UnicodeDecodeError:
        raise ToolError(f"{place} is not text") from None
    except OSError as error:
        raise ToolError(f"{place}: {error.strerror}") from None


def replace_text(place: Path, old: str | None, new: str) -> None:
    """Writes the file. Raises `ToolError` when it has changed since `old` was read: the owner was shown that state."""
    now = read_text(place) if place.exists() else None
    if now != old:
        raise ToolError(f"{place} has changed since it was read; read it again")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(new.encode())
    except OSError as error:
        raise ToolError(f"{place}: {error.strerror}") from None
