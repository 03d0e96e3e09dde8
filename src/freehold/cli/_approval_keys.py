"""Reads the answer to an approval from single keys: a permission, a choice by its number, or typed text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freehold.client.session_models import ApprovalAnswer

Json = dict[str, Any]

PERMISSION_KEYS: dict[str, tuple[ApprovalAnswer, str]] = {
    "y": ("once", "once"),
    "c": ("conversation", "for this conversation"),
    "a": ("always", "always"),
    "n": ("reject", "no"),
}
CHOICE_KEYS = "123456789abc"
MAX_ANSWER_LENGTH = 2000
ENTER, ESCAPE, ERASE = "\r\n", "\x1b", "\x7f\x08"


@dataclass(frozen=True)
class KeyAnswer:
    """An answer to one approval."""

    approval: str
    answer: ApprovalAnswer
    note: str | None = None


def list_keys(approval: Json) -> list[tuple[str, str]]:
    """The keys that answer this approval, with the meaning of each."""
    details = approval.get("details") or {}
    if details.get("kind") != "question":
        offered = approval.get("options") or ("once", "reject")
        return [(key, words) for key, (answer, words) in PERMISSION_KEYS.items() if answer in offered]
    choices = [(key, str(choice)) for key, choice in zip(CHOICE_KEYS, details.get("options") or (), strict=False)]
    if details.get("free_text"):
        choices.append(("t", "type an answer"))
    return [*(choices or [("y", "yes")]), ("n", "no")]


class ApprovalKeyReader:
    """Turns keys into an answer. `echo` prints typed text, because the terminal does not echo it."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self._typed: str | None = None
        self._about = ""

    def read_key(self, key: str, approval: Json) -> KeyAnswer | None:
        """Return the answer when it is complete. Text typed for another approval is dropped."""
        name = str(approval.get("id"))
        if name != self._about:
            self._about, self._typed = name, None
        if self._typed is not None:
            return self._type(key, name)
        pressed = key.lower()
        meaning = dict(list_keys(approval)).get(pressed)
        if meaning is None:
            return None
        details = approval.get("details") or {}
        if details.get("kind") != "question":
            return KeyAnswer(name, PERMISSION_KEYS[pressed][0])
        if pressed == "n":
            return KeyAnswer(name, "reject")
        if pressed == "t":
            self._typed = ""
            self._echo("  > ")
            return None
        return KeyAnswer(name, "once", meaning if details.get("options") else None)

    def _type(self, key: str, name: str) -> KeyAnswer | None:
        assert self._typed is not None
        if key in ENTER:
            text, self._typed = self._typed.strip(), None
            self._echo("\n")
            return KeyAnswer(name, "once", text) if text else None
        if key == ESCAPE:
            self._typed = None
            self._echo("\n")
        elif key in ERASE:
            if self._typed:
                self._typed = self._typed[:-1]
                self._echo("\b \b")
        elif key.isprintable() and len(self._typed) < MAX_ANSWER_LENGTH:
            self._typed += key
            self._echo(key)
        return None
