"""Keys that answer what an agent asks: leave to act by one, a choice by its number, words by typing them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freehold.client.sessions import Choice

Json = dict[str, Any]

LEAVE: dict[str, tuple[Choice, str]] = {
    "y": ("once", "once"),
    "s": ("session", "for this session"),
    "a": ("always", "always"),
    "n": ("reject", "no"),
}
NUMBERS = "123456789abc"
MAX_TYPED = 2000
ENTER, ESCAPE, ERASE = "\r\n", "\x1b", "\x7f\x08"


@dataclass(frozen=True)
class Said:
    """An answer, and to which question."""

    approval: str
    answer: Choice
    note: str | None = None


def offers(asked: Json) -> list[tuple[str, str]]:
    """The keys that this question takes, and what each means."""
    details = asked.get("details") or {}
    if details.get("kind") != "question":
        offered = asked.get("options") or ("once", "reject")
        return [(key, words) for key, (answer, words) in LEAVE.items() if answer in offered]
    choices = [(key, str(choice)) for key, choice in zip(NUMBERS, details.get("options") or (), strict=False)]
    if details.get("free_text"):
        choices.append(("t", "type an answer"))
    return [*(choices or [("y", "yes")]), ("n", "no")]


class Answering:
    """Takes one key after the other; `echo` shows what is typed, for the terminal itself does not."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self._typed: str | None = None
        self._about = ""

    def press(self, key: str, asked: Json) -> Said | None:
        """The answer, once there is one. Words that were begun for another question are dropped with it."""
        name = str(asked.get("id"))
        if name != self._about:
            self._about, self._typed = name, None
        if self._typed is not None:
            return self._type(key, name)
        pressed = key.lower()
        meaning = dict(offers(asked)).get(pressed)
        if meaning is None:
            return None
        details = asked.get("details") or {}
        if details.get("kind") != "question":
            return Said(name, LEAVE[pressed][0])
        if pressed == "n":
            return Said(name, "reject")
        if pressed == "t":
            self._typed = ""
            self._echo("  > ")
            return None
        return Said(name, "once", meaning if details.get("options") else None)

    def _type(self, key: str, name: str) -> Said | None:
        assert self._typed is not None
        if key in ENTER:
            said, self._typed = self._typed.strip(), None
            self._echo("\n")
            return Said(name, "once", said) if said else None
        if key == ESCAPE:
            self._typed = None
            self._echo("\n")
        elif key in ERASE:
            if self._typed:
                self._typed = self._typed[:-1]
                self._echo("\b \b")
        elif key.isprintable() and len(self._typed) < MAX_TYPED:
            self._typed += key
            self._echo(key)
        return None
