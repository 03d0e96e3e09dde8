"""What a memory may contain, and who may reach which namespace. Every implementation refuses the same."""

import math
import re
from dataclasses import dataclass

from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.memory.contract import (
    MAX_NAMESPACES,
    MAX_NOTE,
    MAX_PAGE,
    MAX_TEXT,
    ORIGINS,
    SHARED,
    MemoryOrigin,
)
from freehold.slots.statement import places

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_NAMESPACE = re.compile(r"shared|(?:agent|project):[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)
LAST_MOMENT = 32_503_680_000.0
"""The year 3000."""


def invalid(message: str) -> SlotError:
    return SlotError("memory", "invalid", message)


def not_found(id: str) -> SlotError:
    return SlotError("memory", "not-found", f"There is no memory {id[:80]!a}", hint="freehold memory lists them")


def check_id(id: str) -> None:
    if _ID.fullmatch(id) is None:
        raise invalid(f"{id[:80]!a} is not the id of a memory")


def check_words(name: str, value: str, longest: int) -> None:
    """Text that every database can store: valid Unicode without NUL."""
    if len(value) > longest:
        raise invalid(f"{name} has {len(value)} characters. It has at most {longest}")
    if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise invalid(f"{name} contains a character that cannot be stored")


def check_memory_text(text: str) -> None:
    check_words("text", text, MAX_TEXT)
    if not text.strip():
        raise invalid("text is empty")


def check_origin(origin: MemoryOrigin) -> None:
    if origin.kind not in ORIGINS:
        raise invalid(f"{origin.kind[:80]!a} is not an origin. The origins are: {', '.join(ORIGINS)}")
    check_words("origin.session", origin.session or "", 100)
    check_words("origin.note", origin.note or "", MAX_NOTE)
    if origin.turn is not None and not 0 <= origin.turn < 2**31:
        raise invalid("origin.turn is out of range")


def check_moment(name: str, at: float) -> None:
    if not math.isfinite(at) or not 0 <= at <= LAST_MOMENT:
        raise invalid(f"{name} is not a time in seconds since 1970")


def check_page(limit: int, most: int = MAX_PAGE) -> int:
    if not 1 <= limit <= most:
        raise invalid(f"limit is {limit}. It is 1 to {most}")
    return limit


def check_namespace(namespace: str, caller: SlotCaller) -> None:
    """An agent reaches what is shared, what belongs to a project, and its own namespace."""
    if _NAMESPACE.fullmatch(namespace) is None:
        raise invalid(f"{namespace[:80]!a} is not a namespace. It is shared, project:NAME or agent:NAME")
    if not may_reach(namespace, caller):
        raise SlotError(
            "memory",
            "denied",
            f"The namespace {namespace} belongs to another agent",
            hint=f"This agent has shared, project:NAME and {own_namespace(caller)}",
        )


def may_reach(namespace: str, caller: SlotCaller) -> bool:
    return caller.session is None or not namespace.startswith("agent:") or namespace == own_namespace(caller)


def own_namespace(caller: SlotCaller) -> str:
    """Of the agent of a session. None when the agent is not known, or works for another one, which may not read it."""
    is_own = caller.agent is not None and set(caller.above) <= {caller.agent}
    return f"agent:{caller.agent}" if is_own else SHARED


@dataclass(frozen=True)
class NamespaceReach:
    """The namespaces that a call looks into: these, or all that the caller may read."""

    names: tuple[str, ...]
    caller: SlotCaller

    def includes(self, namespace: str) -> bool:
        return namespace in self.names if self.names else may_reach(namespace, self.caller)

    @property
    def condition(self) -> tuple[str, tuple[str, ...]]:
        """As a condition of SQL on the column `namespace`, with its parameters."""
        if self.names:
            return f"namespace IN {places(self.names)}", self.names
        if self.caller.session is None:
            return "namespace = namespace", ()
        return "(namespace NOT LIKE 'agent:' || ? OR namespace = ?)", ("%", own_namespace(self.caller))


def check_reach(namespaces: tuple[str, ...], caller: SlotCaller) -> NamespaceReach:
    """Raises `memory.denied` when one of the namespaces belongs to another agent."""
    if len(namespaces) > MAX_NAMESPACES:
        raise invalid(f"At most {MAX_NAMESPACES} namespaces can be searched at once")
    for one in namespaces:
        check_namespace(one, caller)
    return NamespaceReach(tuple(sorted(set(namespaces))), caller)
