"""A conversation in the terminal: words as they come, one line a tool call, changes in colour, questions by a key."""

import difflib
from collections.abc import Callable, Iterator
from typing import Any

import click

from freehold.agents.visible import make_visible
from freehold.cli._asked import LEAVE, offers
from freehold.cli._markdown import Markdown
from freehold.client.sessions import Update

MAX_DIFF = 60
_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●"}

Json = dict[str, Any]


class Screen:
    """Writes what updates tell. Nothing of the agent's reaches the terminal before hidden characters are spelled out."""

    def __init__(self, write: Callable[[str], None], *, colour: bool, elsewhere: str | None = None) -> None:
        self._write = write
        self._elsewhere = elsewhere
        """Where questions are answered when nobody can press a key here."""
        self._colour = colour
        self._markdown = Markdown(colour=colour)
        self._printed: dict[str, str] = {}
        self._speaking: tuple[str, str] | None = None
        self._tools: set[str] = set()
        self._shown: set[str] = set()
        self._refused: set[str] = set()
        """Calls that the owner said no to: what the agent is told then is not for the owner."""
        self.questions: list[Json] = []
        """Those that wait, the first to be answered first."""

    def show(self, update: Update) -> None:
        data = update.data
        match update.kind:
            case "message" | "thought" if update.is_delta:
                self._say(update.kind, str(data.get("id")), str(data.get("text", "")))
            case "message" | "thought" if data.get("role") != "user":
                self._rest(update.kind, str(data.get("id")), str(data.get("text", "")))
            case "tool":
                self._tool(data)
            case "plan":
                self._plan(data.get("entries") or [])
            case "approval":
                self._approval(data)
            case "turn.ended":
                self._ended(data)
            case _:
                return

    # Words

    def _say(self, kind: str, name: str, text: str) -> None:
        if self._speaking != (kind, name):
            self.silence()
            self._speaking = (kind, name)
        self._printed[name] = self._printed.get(name, "") + text
        words = make_visible(text)
        self._write(self._markdown.feed(words) if kind == "message" else self._dim(words))

    def _rest(self, kind: str, name: str, whole: str) -> None:
        """The message is whole: what of it was not heard as it was said."""
        before = self._printed.get(name, "")
        left = whole[len(before) :] if whole.startswith(before) else whole
        if left:
            self._say(kind, name, left)
        self._printed.pop(name, None)
        self.silence()

    def silence(self) -> None:
        """Begin a new line, if one has begun."""
        if self._speaking is not None:
            self._write(self._markdown.end() + "\n")
            self._speaking = None

    # Work

    def _tool(self, data: Json) -> None:
        name, status = str(data.get("id")), data.get("status")
        if name not in self._tools:
            self._tools.add(name)
            self._line(f"• {_one_line(data.get('title'))}", fg="cyan")
        if status not in ("completed", "failed") or f"{name} ended" in self._tools:
            return
        self._tools.add(f"{name} ended")
        content = data.get("content") or []
        if name in self._refused:
            self._line("  ✗ not done", fg="red")
        elif status == "failed":
            words = next((part.get("text") for part in content if part.get("type") == "text" and part.get("text")), "")
            self._line(f"  ✗ {_one_line(_last_line(words))}", fg="red")
        elif name not in self._shown:
            self._diffs([part for part in content if part.get("type") == "diff"])

    def _plan(self, entries: list[Json]) -> None:
        for entry in entries:
            self._line(f"  {_MARKS.get(str(entry.get('status')), '○')} {_one_line(entry.get('content'))}", dim=True)

    def _diffs(self, diffs: list[Json]) -> None:
        for diff in diffs:
            self._line(f"  {_one_line(diff.get('path'))}", bold=True)
            lines = list(_diff(str(diff.get("old") or ""), str(diff.get("new") or "")))
            for line in lines[:MAX_DIFF]:
                colour = {"+": "green", "-": "red"}.get(line[:1])
                self._line(f"  {_one_line(line)}", fg=colour)
            if len(lines) > MAX_DIFF:
                self._line(f"  … {len(lines) - MAX_DIFF} more lines", dim=True)

    # Questions

    def _approval(self, data: Json) -> None:
        if data.get("state") != "pending":
            waiting = [one for one in self.questions if one["id"] != data.get("id")]
            if len(waiting) < len(self.questions):
                self.questions[:] = waiting
                self._line(f"  {_answered(data)}", dim=True)
                if data.get("answer") == "reject":
                    self._refused.add(str(data.get("tool")))
                self._ask()
            return
        self.questions.append(data)
        if len(self.questions) == 1:
            self._ask()

    def _ask(self) -> None:
        if not self.questions:
            return
        asked = self.questions[0]
        details = asked.get("details") or {}
        self._line(f"? {_one_line(asked.get('title'))}", fg="yellow", bold=True)
        if details.get("command"):
            for line in str(details["command"]).splitlines():
                self._line(f"  $ {_one_line(line)}")
        elif details.get("diffs"):
            self._diffs(details["diffs"])
            self._shown.add(str(asked.get("tool")))
        elif details.get("input"):
            for line in str(details["input"]).splitlines()[:MAX_DIFF]:
                self._line(f"  {_one_line(line)}")
        if self._elsewhere is not None:
            self._line(f"  waits for your answer at {self._elsewhere}", fg="yellow")
            return
        keys = [f"[{key}] {_one_line(words)}" for key, words in offers(asked)]
        if details.get("kind") == "question":
            for line in keys:
                self._line(f"  {line}", fg="yellow")
        else:
            self._line(f"  {'  '.join(keys)}", fg="yellow")

    # The end

    def _ended(self, data: Json) -> None:
        self.questions.clear()
        error = data.get("error")
        if isinstance(error, dict):
            self._line(f"✗ {_one_line(error.get('message'))}", fg="red")
            if error.get("hint"):
                self._line(f"  {_one_line(error['hint'])}", dim=True)
        elif data.get("stop_reason") not in ("end_turn", None):
            self._line(f"[{_one_line(data['stop_reason'])}]", dim=True)
        facts = [*_changes(data.get("changes")), *_usage(data.get("usage"))]
        if facts:
            self._line(" · ".join(facts), dim=True)

    def _line(self, text: str, **style: Any) -> None:
        """The one way to a line of its own: whatever it was made of, nothing in it moves the terminal."""
        self.silence()
        words = make_visible(text, lines=False)
        self._write((click.style(words, **style) if self._colour else words) + "\n")

    def _dim(self, text: str) -> str:
        return click.style(text, dim=True) if self._colour else text


def _answered(approval: Json) -> str:
    """In the words of the key that was pressed, here or elsewhere."""
    words: dict[object, str] = dict(LEAVE.values())
    return str(approval.get("note") or words.get(approval.get("answer")) or approval.get("state"))


def _one_line(text: object) -> str:
    return make_visible(str(text or ""), lines=False)[:400]


def _last_line(text: object) -> str:
    lines = [line for line in str(text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "failed"


def _diff(old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    yield from (line for line in lines if not line.startswith(("---", "+++")))


def _changes(changes: object) -> list[str]:
    if not isinstance(changes, dict):
        return []
    counts = [f"{sign}{changes[name]}" for name, sign in _SIGNS.items() if changes.get(name)]
    if not counts:
        return []
    beside = ", some perhaps by others who worked at the same time" if changes.get("shared") else ""
    return [f"files {' '.join(counts)}{beside}, freehold undo takes it back"]


def _usage(usage: object) -> list[str]:
    if not isinstance(usage, dict) or not (usage.get("input") or usage.get("output")):
        return []
    cost = usage.get("cost")
    words = f"{usage.get('input', 0)} tokens in, {usage.get('output', 0)} out"
    return [words, f"${cost:.4f}"] if isinstance(cost, float) else [words]


_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
