"""Names of who acts, here and in another Freehold that keeps the items.

There, everybody who acts from here has the name of the token first: `session:a1` is `token:laptop/session:a1`. So they
are different callers, and none of them is the owner there. What that Freehold calls `owner` is `neighbour:owner` here.
Other names, such as the `alice` of an imported record, belong to nobody who can call, and are the same in both.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from freehold.slots.beads.contract import Bead, BeadChange, BeadDetails
from freehold.slots.contract import Record, SlotCaller

NEIGHBOUR = "neighbour:"
"""What the names of those begin with who do not act from here."""

Translate = Callable[[str], str]


class ActorNames:
    """Translates names and everything that has them. `prefix`: what is before a name there, such as `token:laptop/`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def here(self, name: str) -> str:
        if name.startswith(self._prefix):
            return name.removeprefix(self._prefix)
        return f"{NEIGHBOUR}{name}" if _can_call(name) else name

    def there(self, name: str) -> str:
        """Nobody gets the name of somebody who does not act from here."""
        return f"{self._prefix}{name}" if _can_call(name) else name

    def wanted_there(self, name: str) -> str:
        """A name to look for. It may also be that of somebody there."""
        return name.removeprefix(NEIGHBOUR) if name.startswith(NEIGHBOUR) else self.there(name)

    def words_here(self, words: str) -> str:
        """An error of the other side, which may end with the name of a holder."""
        start, mark, name = words.rpartition(" is held by ")
        return f"{start}{mark}{self.here(name)}" if mark else words

    def bead(self, bead: Bead) -> Bead:
        return replace(
            bead,
            holder=None if bead.holder is None else self.here(bead.holder),
            created_by=self.here(bead.created_by),
            sessions=tuple(map(self._session_here, bead.sessions)),
        )

    def details(self, details: BeadDetails) -> BeadDetails:
        return replace(
            details,
            bead=self.bead(details.bead),
            comments=tuple(replace(one, author=self.here(one.author)) for one in details.comments),
            history=tuple(self._change(one) for one in details.history),
        )

    def record(self, record: Record) -> Record:
        return _rename_record(record, self.here, self._session_here)

    def record_there(self, record: Record) -> Record:
        return _rename_record(record, self.there, self._session_there)

    def _change(self, change: BeadChange) -> BeadChange:
        return replace(change, who=self.here(change.who), fields=_rename(change.fields, self.here, "holder"))

    def _session_here(self, session: str) -> str:
        if session.startswith(self._prefix):
            return session.removeprefix(self._prefix)
        return f"{NEIGHBOUR}{session}"

    def _session_there(self, session: str) -> str:
        return f"{self._prefix}{session}"


def limit_names(records: tuple[Record, ...], caller: SlotCaller) -> tuple[Record, ...]:
    """Records as a caller may store them. Only the owner may say what others than the caller's own have done."""
    prefix = f"{caller.name}/" if caller.realm is None else caller.realm
    if not prefix:
        return records
    names = ActorNames(prefix)
    return tuple(map(names.record_there, records))


def _can_call(name: str) -> bool:
    return name in ("owner", "freehold") or ":" in name


def _rename(given: Mapping[str, object], translate: Translate, *fields: str) -> dict[str, object]:
    """With these fields translated, where they are text. What is wrong is left to whoever checks it."""
    found = dict(given)
    for field in fields:
        value = found.get(field)
        if isinstance(value, str) and value:
            found[field] = translate(value)
    return found


def _rename_record(record: Record, name: Translate, session: Translate) -> Record:
    found = _rename(record, name, "assignee", "created_by")
    if "comments" in found:
        found["comments"] = _each(found["comments"], lambda one: _rename(one, name, "author"))
    own = found.get("freehold")
    if isinstance(own, Mapping):
        found["freehold"] = _rename_own(own, name, session)
    return found


def _rename_own(own: Mapping[str, object], name: Translate, session: Translate) -> dict[str, object]:
    """The field `freehold` of a record."""
    found = dict(own)
    sessions = found.get("sessions")
    if isinstance(sessions, list | tuple):
        found["sessions"] = [session(one) if isinstance(one, str) else one for one in sessions]
    if "comments" in found:
        found["comments"] = _each(found["comments"], lambda one: _rename(one, name, "author"))
    if "history" in found:
        found["history"] = _each(found["history"], lambda one: _rename_change(one, name))
    return found


def _rename_change(change: Mapping[str, object], name: Translate) -> dict[str, object]:
    found = _rename(change, name, "who")
    fields = found.get("fields")
    return {**found, "fields": _rename(fields, name, "holder")} if isinstance(fields, Mapping) else found


def _each(values: object, change: Callable[[Mapping[str, object]], object]) -> object:
    if not isinstance(values, list | tuple):
        return values
    return [change(one) if isinstance(one, Mapping) else one for one in values]
