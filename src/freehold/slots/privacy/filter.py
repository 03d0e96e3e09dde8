"""Reads every text of a call on its way to a slot, and every text of the reply on its way to the owner."""

import base64
import binascii
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

from freehold.manifest.sections.slots import PrivacyMode
from freehold.slots.contract import SlotCall, SlotCaller, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.privacy.detectors import MachineUser, PrivateKind, find_known_secrets, find_private
from freehold.slots.privacy.pseudonyms import Pseudonyms

T = TypeVar("T")
_WORDS: dict[PrivateKind, str] = {
    "secret": "a secret",
    "mail": "a mail address",
    "phone": "a phone number",
    "card": "a card number",
    "iban": "a bank account",
    "address": "an address",
}
MAX_DEPTH = 64
MADE_HERE = frozenset({"id", "cursor", "known", "etag"})
"""Names that a slot makes itself, of digits and letters. They are looked through for known secrets only."""
MOSTLY_TEXT = 0.85
"""The share of printable characters from which on a document counts as text in a strange encoding."""
LONG_NUMBER = 10**11
"""From here on a number can be that of a card or a phone."""


@dataclass(frozen=True)
class CleanCall:
    """A call that may go on. `replaced`: how many parts of each kind have a pseudonym now."""

    request: SlotCall[Any]
    replaced: Mapping[str, int]


@dataclass(frozen=True)
class CleanData:
    """Data that may leave, and how many parts of each kind were left out with all of it, or have a pseudonym now."""

    data: Mapping[str, Any]
    refused: Mapping[str, int]
    replaced: Mapping[str, int]


@dataclass(frozen=True)
class Sighting:
    kind: PrivateKind
    field: str


class PrivacyError(SlotError):
    """A call that was refused, with what was seen and where, never with the value."""

    def __init__(self, slot: SlotName, seen: list[Sighting], hint: str) -> None:
        parts = dict.fromkeys(f"{_WORDS[one.kind]} in {one.field}" for one in seen)
        super().__init__(slot, "denied", f"The privacy filter refused this: {', '.join(parts)}", hint=hint)
        self.found = Counter(one.kind for one in seen)


class PrivacyFilter:
    """For one slot. Blocking: large texts take milliseconds, and new pseudonyms are stored."""

    def __init__(self, slot: SlotName, mode: PrivacyMode, pseudonyms: Pseudonyms, user: MachineUser) -> None:
        self.mode = mode
        self._slot = slot
        self._pseudonyms = pseudonyms
        self._user = user

    def clean(self, request: SlotCall[Any]) -> CleanCall:
        """The call without private parts. Raises `PrivacyError`."""
        seen: list[Sighting] = []
        named: list[Sighting] = []
        replaced: Counter[str] = Counter()

        def check(text: str, field: str) -> str:
            if find_known_secrets(text):
                named.append(Sighting("secret", field))
            elif field not in MADE_HERE:
                # Each part of a path by itself, as a person reads it.
                words = text.replace("/", " ")
                named.extend(Sighting(part.kind, field) for part in find_private(words, self._user))
            return text

        def change(text: str, field: str) -> str:
            parts = find_private(text, self._user)
            seen.extend(Sighting(part.kind, field) for part in parts)
            if self.mode == "strict" or not parts:
                return text
            replaced.update(part.kind for part in parts)
            given = self._pseudonyms.replace([(part.kind, text[part.start : part.end]) for part in parts], time.time())
            pieces, reached = [], 0
            for part, name in zip(parts, given, strict=True):
                pieces += [text[reached : part.start], name]
                reached = part.end
            return "".join([*pieces, text[reached:]])

        try:
            cleaned = _change_call(request, change, check)
        except _HiddenSecretError as error:
            hint = "It is not text, so it cannot be replaced: leave it out"
            raise PrivacyError(self._slot, [Sighting("secret", str(error))], hint) from error
        except ValueError as error:
            raise SlotError(self._slot, "invalid", str(error)) from error
        if named:
            raise PrivacyError(self._slot, named, "A name or an id cannot be replaced: choose another one")
        if self.mode == "strict" and seen:
            hint = f'Leave it out, or set slots.{self._slot}.privacy = "soft" in freehold.toml to store pseudonyms'
            raise PrivacyError(self._slot, seen, hint)
        return CleanCall(cleaned, replaced)

    def clean_data(self, data: Mapping[str, Any]) -> "CleanData":
        """Data that leaves without a call, such as of an event of the timeline. What may not leave is left out."""
        try:
            done = self.clean(LeavingData(data))
        except SlotError as error:
            return CleanData({"privacy": error.message}, error.found, {})
        assert isinstance(done.request, LeavingData)
        return CleanData(done.request.data, {}, done.replaced)

    def reveal(self, reply: T, caller: SlotCaller) -> T:
        """The reply with what its pseudonyms stand for, for the owner. Others get it as it is."""
        if not caller.is_owner or self.mode == "off":
            return reply
        revealed: T = _change_texts(reply, lambda text, _: self._pseudonyms.restore(text), "reply")
        return revealed


@dataclass(frozen=True)
class LeavingData(SlotCall[None]):
    """Not a call: the shape in which data without a call is read."""

    method: ClassVar[str] = "leave"
    data: Mapping[str, Any]


class _HiddenSecretError(Exception):
    """A document that is not text contains a secret of a known form. Its words are the name of the field."""


_PLAIN = re.compile(r"[\w./:+=-]{0,512}", re.ASCII)
"""What a name or an id looks like. Whatever else stands in such a field is read as any other text."""

_FIELD = re.compile(r"[a-z][a-z_]{0,30}")

ChangeText = Callable[[str, str], str]


def _change_call(request: SlotCall[Any], change: ChangeText, check: ChangeText) -> Any:
    """The call with every text changed. Names and ids are only checked."""
    names, record_names = type(request).identifiers, type(request).record_identifiers
    return _change_fields(request, change, lambda field: _Names(check, field in names, record_names), 0)


def _change_fields(value: Any, change: ChangeText, names_of: "Callable[[str], _Names | None]", depth: int) -> Any:
    changes = {}
    for one in fields(value):
        before = getattr(value, one.name)
        if one.name == "content" and getattr(value, "encoding", None) == "base64":
            after = _change_base64(before, change)
        else:
            after = _change_texts(before, change, one.name, names_of(one.name), depth + 1)
        if after is not before:
            changes[one.name] = after
    return replace(value, **changes) if changes else value


@dataclass(frozen=True)
class _Names:
    """Which texts name something: all of this field, or in objects those under these keys."""

    check: ChangeText
    all: bool = False
    keys: frozenset[str] = frozenset()

    def under(self, key: str) -> "_Names":
        return replace(self, all=True) if key in self.keys else self


def _change_texts(value: Any, change: ChangeText, field: str, names: "_Names | None" = None, depth: int = 0) -> Any:
    """The same value with every text changed. Keys of objects are texts too."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{field} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        is_name = names is not None and names.all and _PLAIN.fullmatch(value) is not None
        return names.check(value, field) if names is not None and is_name else change(value, field)
    if isinstance(value, bytes):
        return _change_bytes(value, change, field)
    if isinstance(value, int) and abs(value) >= LONG_NUMBER:
        changed = change(str(value), field)
        return value if changed == str(value) else changed
    if isinstance(value, Mapping):
        return _change_object(value, change, field, names, depth)
    if isinstance(value, list | tuple):
        items = [_change_texts(one, change, field, names, depth + 1) for one in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if is_dataclass(value) and not isinstance(value, type):
        return _change_fields(value, change, lambda name: names and names.under(name), depth)
    return value


def _change_object(value: Mapping[Any, Any], change: ChangeText, field: str, names: "_Names | None", depth: int) -> Any:
    changed = {}
    for key, one in value.items():
        if key == "content" and value.get("encoding") == "base64":
            changed[key] = _change_base64(one, change)
        else:
            inner = names and names.under(str(key))
            # A key can be private too, and what was refused is told by the name of its field.
            shown = key if isinstance(key, str) and _FIELD.fullmatch(key) else field
            changed[change(str(key), field)] = _change_texts(one, change, shown, inner, depth + 1)
    return value if changed == value else changed


def _change_base64(value: Any, change: ChangeText) -> Any:
    """What is not base64 is refused by the slot, and read here as any other text."""
    if not isinstance(value, str):
        return _change_texts(value, change, "content")
    try:
        content = base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return change(value, "content")
    changed = _change_bytes(content, change, "content")
    return value if changed is content else base64.b64encode(changed).decode()


def _change_bytes(value: bytes, change: ChangeText, field: str) -> bytes:
    """A document that is text is read as text. In any other only secrets of known forms are looked for."""
    try:
        text = value.decode("utf-8")
        is_text = "\0" not in text
    except UnicodeDecodeError:
        text, is_text = "", False
    if not is_text:
        readable = value.replace(b"\0", b"").decode("utf-8", "ignore")
        if find_known_secrets(readable) or (_is_mostly_text(value, readable) and change(readable, field) != readable):
            raise _HiddenSecretError(field)
        return value
    changed = change(text, field)
    return value if changed == text else changed.encode("utf-8")


def _is_mostly_text(value: bytes, readable: str) -> bool:
    """Whether it is text in another encoding, or with a few bytes that are none."""
    shown = sum(one.isprintable() or one in "\n\r\t" for one in readable)
    return shown >= MOSTLY_TEXT * max(1, len(value) - value.count(0))
