"""The synchronous client, generated from the asynchronous one."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "freehold" / "client" / "_async"
TARGET = "src/freehold/client/_sync"

_WORDS: tuple[tuple[str, str], ...] = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\baclosing\b", "closing"),
    (r"\baiter_lines\b", "iter_lines"),
    (r"\baread\b", "read"),
    (r"\basync_sleep\b", "sleep"),
    (r"\bhttpx2\.AsyncClient\b", "httpx2.Client"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\bAsync([A-Z])", r"Sync\1"),
    (r"\bwebsockets\.asyncio\b", "websockets.sync"),
    (r"\bfreehold\.client\._async\b", "freehold.client._sync"),
)


def sync_client() -> Mapping[str, Callable[[], str]]:
    """Each file of the generated half, with the function that makes it."""
    return {f"{TARGET}/{path.name}": partial(_without_waiting, path) for path in sorted(SOURCE.glob("*.py"))}


def _without_waiting(path: Path) -> str:
    if path.name == "__init__.py":
        return '"""Made from `_async/` by `python -m tools.generate`: change it there."""\n'
    text = path.read_text()
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    note = f"# made from _async/{path.name} by python -m tools.generate\n"
    return _formatted(note + text)


def _formatted(text: str) -> str:
    """Shorter words leave room on the line; the formatter decides what to do with it."""
    # Told what is ours, since a module that is made for the first time is not there to be found. UP028: a loop that
    # waited could not be a `yield from`, and now it can.
    ours = "lint.isort.known-first-party = ['freehold']"
    mend = ["check", "--select", "I,UP028", "--fix", "--unsafe-fixes", "--quiet", "--config", ours]
    for arguments in (mend, ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", "client.py", "-"]
        text = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True).stdout
    return text
