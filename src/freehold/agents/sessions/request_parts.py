"""What the owner is shown of a permission request, part by part. What is left out is counted, never dropped silently."""

from dataclasses import asdict, dataclass
from typing import Literal

from freehold.agents.acp.json_rpc import Json
from freehold.agents.visible_text import make_visible

PartKind = Literal[
    "command", "folder", "environment", "stdin", "diff", "path", "text", "input", "resource", "terminal", "meta"
]
MAX_PARTS = 400
MAX_PART = 100_000
"""Characters of one text."""

MAX_SHOWN = 400_000
"""Characters of all parts together."""

_CONTEXT_LINES = 3
_CONTEXT_CHARACTERS = 2_000


@dataclass(frozen=True)
class RequestPart:
    """One part, with hidden characters made visible. `resolved` is where a path really leads, when that is elsewhere."""

    kind: PartKind
    label: str
    text: str = ""
    path: str | None = None
    resolved: str | None = None
    old: str | None = None
    new: str | None = None
    hidden_bytes: int = 0
    runs_by_itself: str | None = None
    warning: str | None = None

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class PathMarks:
    """What is known about the path of a part."""

    resolved: str | None = None
    runs_by_itself: str | None = None
    warning: str | None = None


class PartsBuilder:
    """Collects parts until the limits. `hidden_bytes` counts what did not fit."""

    def __init__(self) -> None:
        self.parts: list[RequestPart] = []
        self.hidden_bytes = 0
        self._left = MAX_SHOWN

    def add_text(
        self, kind: PartKind, label: str, text: str, *, runs_by_itself: str | None = None, warning: str | None = None
    ) -> None:
        shown, hidden = self._cut(text, MAX_PART)
        self._add(RequestPart(kind, label, shown, hidden_bytes=hidden, runs_by_itself=runs_by_itself, warning=warning))

    def add_path(self, label: str, path: str, marks: PathMarks) -> None:
        shown, hidden = self._cut(path, MAX_PART)
        resolved = None if marks.resolved is None else make_visible(marks.resolved)
        part = RequestPart("path", label, shown, shown, resolved, None, None, hidden)
        self._add(_mark(part, marks))

    def add_diff(self, path: str, old: str | None, new: str, marks: PathMarks) -> None:
        """A long change is shown from its first different line on."""
        start_bytes = 0
        if len(new) > MAX_PART or len(old or "") > MAX_PART:
            skipped = _same_start(old or "", new)
            start_bytes = _size(new[:skipped])
            old, new = None if old is None else old[skipped:], new[skipped:]
        shown_old, hidden_old = (None, 0) if old is None else self._cut(old, MAX_PART)
        shown_new, hidden_new = self._cut(new, MAX_PART)
        self.hidden_bytes += start_bytes
        hidden = start_bytes + hidden_old + hidden_new
        resolved = None if marks.resolved is None else make_visible(marks.resolved)
        part = RequestPart("diff", "Change", "", make_visible(path), resolved, shown_old, shown_new, hidden)
        if old == new:
            marks = PathMarks(marks.resolved, marks.runs_by_itself, marks.warning or "Old and new text are the same")
        self._add(_mark(part, marks))

    def _cut(self, text: str, limit: int) -> tuple[str, int]:
        """The begin of a text as it is shown, and how many bytes are not."""
        limit = min(limit, max(0, self._left))
        kept = text[:limit]
        shown = make_visible(kept)
        if len(shown) > max(limit, 1):
            # A hidden character is shown as up to ten visible ones.
            kept = kept[: limit // 10]
            shown = make_visible(kept)
        self._left -= len(shown)
        hidden = _size(text[len(kept) :]) if len(kept) < len(text) else 0
        self.hidden_bytes += hidden
        return shown, hidden

    def _add(self, part: RequestPart) -> None:
        if len(self.parts) < MAX_PARTS:
            self.parts.append(part)
            return
        self.hidden_bytes += sum(_size(text) for text in (part.text, part.path, part.old, part.new) if text)


def _mark(part: RequestPart, marks: PathMarks) -> RequestPart:
    return RequestPart(**{**asdict(part), "runs_by_itself": marks.runs_by_itself, "warning": marks.warning})


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _same_start(old: str, new: str) -> int:
    """Where to begin: some lines before the first difference. 0 when the texts are the same."""
    length = min(len(old), len(new))
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    if low == len(old) == len(new):
        return 0
    start = low
    for _ in range(_CONTEXT_LINES + 1):
        start = new.rfind("\n", 0, max(start, 0))
    return max(start + 1, low - _CONTEXT_CHARACTERS, 0)
