"""search."""

import asyncio
import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path

from freehold.builtin.tool_call import ToolError
from freehold.builtin.tool_context import ToolContext

MAX_FOUND = 200
MAX_FILE = 1024 * 1024
_LEFT_OUT = {".git", "node_modules", "__pycache__", ".venv", ".cache"}


async def search(ctx: ToolContext, pattern: str, path: str = ".", files: str = "*") -> str:
    """Find lines in files with a regular expression. Each result is path:line: text.

    Args:
        pattern: A Python regular expression.
        path: The folder or file to search.
        files: Only files whose name matches this pattern, such as *.py.
    """
    given = {"pattern": pattern, "path": path, "files": files}
    async with ctx.start_call(f"Search {pattern!r}", "search", given, [path]) as tool_call:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ToolError(f"The regular expression is not valid: {error}") from None
        place, _ = ctx.session.resolve_path(path)
        if not place.exists():
            raise ToolError(f"{path} does not exist")
        found = await asyncio.to_thread(lambda: list(_find_lines(wanted, place, files, ctx.session.cwd)))
        if len(found) > MAX_FOUND:
            found = [*found[:MAX_FOUND], f"[more than {MAX_FOUND} results; use a narrower pattern]"]
        return await tool_call.end("\n".join(found) or "[nothing found]")


def _find_lines(wanted: re.Pattern[str], place: Path, files: str, cwd: Path) -> Iterator[str]:
    count = 0
    for file in [place] if place.is_file() else _walk(place, files):
        shown = file.relative_to(cwd) if file.is_relative_to(cwd) else file
        for number, line in enumerate(_lines(file), 1):
            if wanted.search(line):
                yield f"{shown}:{number}: {line.strip()[:300]}"
                count += 1
                if count > MAX_FOUND:
                    return


def _walk(folder: Path, files: str) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        yield from (Path(root, name) for name in sorted(names) if fnmatch.fnmatch(name, files))


def _lines(file: Path) -> list[str]:
    try:
        if not file.is_file() or file.stat().st_size > MAX_FILE:
            return []
        data = file.read_bytes()
    except OSError:
        return []
    return [] if b"\0" in data[:1024] else data.decode(errors="replace").splitlines()
