"""Problems of a manifest, with their place and what to do."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from freehold.manifest.secret_text import looks_secret, mask

Severity = Literal["error", "warning"]
KeyPath = tuple[str | int, ...]

ENVIRONMENT = "environment"
"""Stands in `Problem.file` for a value that came from an environment variable."""


@dataclass(frozen=True)
class ManifestProblem:
    """One problem. `E…` codes stop Freehold, `W…` codes advise and never do."""

    code: str
    message: str
    hint: str
    file: str
    line: int | None = None
    key: str = ""

    @property
    def severity(self) -> Severity:
        return severity_of(self.code)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def severity_of(code: str) -> Severity:
    return "error" if code.startswith("E") else "warning"


def sort_problems(problems: Iterable[ManifestProblem]) -> tuple[ManifestProblem, ...]:
    """Errors first, then by place, without duplicates."""
    return tuple(sorted(set(problems), key=lambda p: (p.severity, p.file, p.line or 0, p.code, p.key, p.message)))


def show_key(path: KeyPath) -> str:
    """`("agents", "my.agent", "env")` → `agents."my.agent".env`, as TOML spells it; cut when it is endless."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = part.replace("_", "").replace("-", "")
            name = part if bare.isascii() and bare.isalnum() else json.dumps(part, ensure_ascii=False)
            text += f".{name}" if text else name
    return cut_printable(text, 120)


def show_value(value: object, most: int = 60) -> str:
    """A value on one line, shortened, without control characters and with secrets masked."""
    if isinstance(value, str) and looks_secret(value):
        return mask(value)
    return cut_printable(json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value), most)


def cut_printable(text: str, most: int) -> str:
    """The text, shortened, with control characters replaced."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def show_path(path: Path) -> str:
    """A path as printable text, whatever bytes it holds."""
    return str(path).encode(errors="replace").decode()
