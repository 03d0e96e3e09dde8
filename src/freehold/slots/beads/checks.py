"""What a bead may contain. Every implementation refuses the same values."""

import re
from collections.abc import Sequence

from freehold.slots.beads.contract import (
    KINDS,
    MAX_LABEL,
    MAX_LABELS,
    MAX_NEEDS,
    MAX_PRIORITY,
    MAX_TEXT,
    MAX_TITLE,
)
from freehold.slots.errors import SlotError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def invalid(message: str) -> SlotError:
    return SlotError("beads", "invalid", message)


def check_id(id: str) -> None:
    if _ID.fullmatch(id) is None:
        raise invalid(f"{id[:80]!a} is not the id of an item")


def check_text(name: str, value: str, longest: int = MAX_TEXT) -> None:
    """Text that every database can store: valid Unicode without NUL."""
    if len(value) > longest:
        raise invalid(f"{name} has {len(value)} characters. It has at most {longest}")
    if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise invalid(f"{name} contains a character that cannot be stored")


def check_title(title: str) -> None:
    check_text("title", title, MAX_TITLE)
    if not title.strip():
        raise invalid("title is empty")


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, each once and sorted."""
    for label in labels:
        check_text("label", label, MAX_LABEL)
        if not label.strip() or label != label.strip():
            raise invalid(f"{label[:80]!a} is not a label")
    found = tuple(sorted(set(labels)))
    if len(found) > MAX_LABELS:
        raise invalid(f"An item has at most {MAX_LABELS} labels, not {len(found)}")
    return found


def check_needs(needs: Sequence[str]) -> tuple[str, ...]:
    for one in needs:
        check_id(one)
    found = tuple(sorted(set(needs)))
    if len(found) > MAX_NEEDS:
        raise invalid(f"An item needs at most {MAX_NEEDS} others, not {len(found)}")
    return found


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise invalid(f"{kind[:80]!a} is not a kind of item. The kinds are: {', '.join(KINDS)}")


def check_priority(priority: int) -> None:
    if not 0 <= priority <= MAX_PRIORITY:
        raise invalid(f"priority is {priority}. It is 0 (first) to {MAX_PRIORITY} (last)")
