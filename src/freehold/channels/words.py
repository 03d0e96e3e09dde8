"""The words of messages. Words of agents stand behind a bar, so that no agent can write a message that looks like ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freehold.agents.visible_text import make_visible
from freehold.observe.secrets import mask_secrets

BAR = "│ "
MAX_TITLE = 120
MAX_EXCERPT = 1_500
FRAME = 700
"""Characters that a message has besides the words of an agent."""
_EMOJI_STYLE = "\ufe0f"

Mask = Callable[[str], str]
"""Masks what looks like a secret, or is one of the vault."""


@dataclass(frozen=True)
class ApprovalWords:
    """`whole`: everything that the request carries is in the text, as it is."""

    text: str
    whole: bool


def show_words(text: str, mask: Mask) -> str:
    """Words of others: nothing hidden in them, and no secrets."""
    return mask(mask_secrets(make_visible(text.replace(_EMOJI_STYLE, "").replace("\r\n", "\n"))))


def show_title(text: str, mask: Mask) -> str:
    """One line of others."""
    line = " ".join(show_words(text, mask).split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def measure(text: str) -> int:
    """Length as messengers count it: in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """At most so many units of UTF-16, and a sign that there is more."""
    if measure(text) <= limit:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, limit - 1)].decode("utf-16-le", "ignore")
    return kept.rstrip() + "…"


def quote(text: str) -> str:
    """Each line behind a bar."""
    return "\n".join(BAR + line for line in text.split("\n"))


def excerpt(text: str, limit: int) -> str:
    """The words of an agent behind a bar, at most so many characters of them."""
    quoted = quote(text.strip())
    if measure(quoted) <= limit:
        return quoted
    rest = "\n(The page has the rest.)"
    return cut(quoted, limit - len(rest)) + rest


def word_approval(data: dict[str, Any], limit: int, mask: Mask) -> ApprovalWords:
    """A permission request with all that it carries, if that fits. It is never cut: then only the page shows it."""
    text = "\n".join(_show_part(part) for part in data["parts"])
    # What is shown is exactly what the call carries, or this is no place to answer it.
    whole = bool(
        data["parts"]
        and data["complete"]
        and not data["hidden_bytes"]
        and not data["names_nothing"]
        and make_visible(text) == text
        and mask(mask_secrets(text)) == text
    )
    quoted = quote(text)
    if not whole or measure(quoted) + FRAME > limit:
        return ApprovalWords("", whole=False)
    return ApprovalWords(quoted, whole=True)


def _show_part(part: dict[str, Any]) -> str:
    lines = [f"{part['label']}:"]
    if part["kind"] == "diff":
        lines[0] = f"{part['label']} {part['path']}:"
        lines += [f"- {line}" for line in (part["old"] or "").split("\n")] if part["old"] is not None else []
        lines += [f"+ {line}" for line in (part["new"] or "").split("\n")]
    else:
        lines.append(part["text"])
    for name in ("resolved", "runs_by_itself", "warning"):
        if part[name]:
            lines.append(f"({'leads to ' if name == 'resolved' else ''}{part[name]})")
    return "\n".join(lines)
