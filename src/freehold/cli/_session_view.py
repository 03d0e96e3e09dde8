"""Prints a session in the terminal: streamed text, one line for each tool call, colored diffs, approvals with keys."""

from collections.abc import Callable
from typing import Any

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._approval_keys import PERMISSION_KEYS, list_keys
from freehold.cli._approval_parts import diff_lines, list_part_lines
from freehold.cli._markdown import MarkdownStream
from freehold.client.session_models import SessionUpdate

MAX_DIFF_LINES = 60
_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●"}

Json = dict[str, Any]


class SessionView:
    """Prints session updates. Hidden characters in the agent's output are made visible first."""

    def __init__(self, write: Callable[[str], None], *, colour: bool, answer_url: str | None = None) -> None:
        self._write = write
        self._answer_url = answer_url
        """The page on which approvals are answered when no keys can be pressed here."""
        self._colour = colour
        self._markdown = MarkdownStream(colour=colour)
        self._printed: dict[str, str] = {}
        self._open_message: tuple[str, str] | None = None
        self._printed_tools: set[str] = set()
        self._shown_diffs: set[str] = set()
        self._refused: set[str] = set()
        """Tool calls that the owner rejected. Their error text is meant for the agent and is not printed."""
        self.pending_approvals: list[Json] = []
        """Unanswered approvals, the oldest first."""

    def show(self, update: SessionUpdate) -> None:
        data = update.data
        match update.kind:
            case "message" | "thought" if update.is_delta:
                self._print_text(update.kind, str(data.get("id")), str(data.get("text", "")))
            case "message" | "thought" if data.get("role") != "user":
                self._complete_text(update.kind, str(data.get("id")), str(data.get("text", "")))
            case "waiting" if update.is_delta:
                self._print_line(_one_line(data.get("text")), dim=True)
            case "tool":
                self._print_tool_call(data)
            case "plan":
                self._print_plan(data.get("entries") or [])
            case "approval":
                self._update_approvals(data)
            case "turn.ended":
                self._print_turn_end(data)
            case _:
                return

    # Text

    def _print_text(self, kind: str, name: str, text: str) -> None:
        if self._open_message != (kind, name):
            self.end_line()
            self._open_message = (kind, name)
        self._printed[name] = self._printed.get(name, "") + text
        visible = make_visible(text)
        self._write(self._markdown.feed(visible) if kind == "message" else self._dim(visible))

    def _complete_text(self, kind: str, name: str, whole: str) -> None:
        """Print the part of a complete message that was not streamed before."""
        before = self._printed.get(name, "")
        left = whole[len(before) :] if whole.startswith(before) else whole
        if left:
            self._print_text(kind, name, left)
        self._printed.pop(name, None)
        self.end_line()

    def end_line(self) -> None:
        """End the line of streamed text, if there is one."""
        if self._open_message is not None:
            self._write(self._markdown.end() + "\n")
            self._open_message = None

    # Tool calls and plans

    def _print_tool_call(self, data: Json) -> None:
        name, status = str(data.get("id")), data.get("status")
        if name not in self._printed_tools:
            self._printed_tools.add(name)
            self._print_line(f"• {_one_line(data.get('title'))}", fg="cyan")
        if status not in ("completed", "failed") or f"{name} ended" in self._printed_tools:
            return
        self._printed_tools.add(f"{name} ended")
        content = data.get("content") or []
        if name in self._refused:
            self._print_line("  ✗ rejected", fg="red")
        elif status == "failed":
            text = next((part.get("text") for part in content if part.get("type") == "text" and part.get("text")), "")
            self._print_line(f"  ✗ {_one_line(_last_line(text))}", fg="red")
        elif name not in self._shown_diffs:
            self._print_diffs([part for part in content if part.get("type") == "diff"])

    def _print_plan(self, entries: list[Json]) -> None:
        for entry in entries:
            self._print_line(
                f"  {_MARKS.get(str(entry.get('status')), '○')} {_one_line(entry.get('content'))}", dim=True
            )

    def _print_diffs(self, diffs: list[Json]) -> None:
        for diff in diffs:
            self._print_line(f"  {_one_line(diff.get('path'))}", bold=True)
            lines = list(diff_lines(str(diff.get("old") or ""), str(diff.get("new") or "")))
            for line in lines[:MAX_DIFF_LINES]:
                colour = {"+": "green", "-": "red"}.get(line[:1])
                self._print_line(f"  {_one_line(line)}", fg=colour)
            if len(lines) > MAX_DIFF_LINES:
                self._print_line(f"  … {len(lines) - MAX_DIFF_LINES} more lines", dim=True)

    # Approvals

    def _update_approvals(self, data: Json) -> None:
        if data.get("state") != "pending":
            waiting = [one for one in self.pending_approvals if one["id"] != data.get("id")]
            if len(waiting) < len(self.pending_approvals):
                self.pending_approvals[:] = waiting
                self._print_line(f"  {_describe_answer(data)}", dim=True)
                if data.get("answer") == "reject":
                    self._refused.add(str(data.get("tool")))
                self._print_approval()
            return
        self.pending_approvals.append(data)
        if len(self.pending_approvals) == 1:
            self._print_approval()

    def _print_approval(self) -> None:
        if not self.pending_approvals:
            return
        approval = self.pending_approvals[0]
        details = approval.get("details") or {}
        self._print_line(f"? {_one_line(approval.get('title'))}", fg="yellow", bold=True)
        for shown in list_part_lines(approval):
            self._print_line(f"  {shown.text}", fg=shown.colour)
        self._shown_diffs.add(str(approval.get("tool")))
        if self._answer_url is not None:
            self._print_line(f"  Answer at {self._answer_url}", fg="yellow")
            return
        keys = [f"[{key}] {_one_line(meaning)}" for key, meaning in list_keys(approval)]
        if details.get("kind") == "question":
            for line in keys:
                self._print_line(f"  {line}", fg="yellow")
        else:
            self._print_line(f"  {'  '.join(keys)}", fg="yellow")

    # The end

    def _print_turn_end(self, data: Json) -> None:
        self.pending_approvals.clear()
        error = data.get("error")
        if isinstance(error, dict):
            self._print_line(f"✗ {_one_line(error.get('message'))}", fg="red")
            if error.get("hint"):
                self._print_line(f"  {_one_line(error['hint'])}", dim=True)
        elif data.get("stop_reason") not in ("end_turn", None):
            self._print_line(f"[{_one_line(data['stop_reason'])}]", dim=True)
        facts = [*_describe_changes(data.get("changes")), *_describe_usage(data.get("usage"))]
        if facts:
            self._print_line(" · ".join(facts), dim=True)

    def _print_line(self, text: str, **style: Any) -> None:
        """Print one line. Control characters in it are made visible."""
        self.end_line()
        words = make_visible(text, lines=False)
        self._write((click.style(words, **style) if self._colour else words) + "\n")

    def _dim(self, text: str) -> str:
        return click.style(text, dim=True) if self._colour else text


def _describe_answer(approval: Json) -> str:
    """The meaning of the key that was pressed, here or in a browser."""
    words: dict[object, str] = dict(PERMISSION_KEYS.values())
    return str(approval.get("note") or words.get(approval.get("answer")) or approval.get("state"))


def _one_line(text: object) -> str:
    return make_visible(str(text or ""), lines=False)[:400]


def _last_line(text: object) -> str:
    lines = [line for line in str(text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "failed"


def _describe_changes(changes: object) -> list[str]:
    if not isinstance(changes, dict):
        return []
    counts = [f"{sign}{changes[name]}" for name, sign in _SIGNS.items() if changes.get(name)]
    if not counts:
        return []
    shared = ", some perhaps made by others at the same time" if changes.get("shared") else ""
    return [f"files {' '.join(counts)}{shared} (undo: freehold undo)"]


def _describe_usage(usage: object) -> list[str]:
    if not isinstance(usage, dict) or not (usage.get("input") or usage.get("output")):
        return []
    cost = usage.get("cost")
    words = f"{usage.get('input', 0)} tokens in, {usage.get('output', 0)} out"
    return [words, f"${cost:.4f}"] if isinstance(cost, float) else [words]


_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
