"""Finds secrets and personal data in a text, by pattern and check digit. What only looks alike is left alone."""

import base64
import binascii
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from freehold.observe.secrets import find_secrets
from freehold.slots.privacy.shadow import ShadowText, cast_shadow

PrivateKind = Literal["secret", "mail", "phone", "card", "iban", "address"]
KINDS: tuple[PrivateKind, ...] = get_args(PrivateKind)
MAX_ENCODED = 100_000
"""Characters of an encoded part that is looked into."""


@dataclass(frozen=True)
class PrivatePart:
    """A part of a text from `start` to `end`. `value` is what it says, without hidden characters."""

    kind: PrivateKind
    start: int
    end: int
    value: str


@dataclass(frozen=True)
class MachineUser:
    """What names this machine or its user: full name, host name, network addresses."""

    words: tuple[str, ...] = ()


def find_private(text: str, user: MachineUser = MachineUser()) -> list[PrivatePart]:  # noqa: B008 - frozen
    """All private parts, in order and without overlap. Where two overlap, the longer one counts."""
    shadow = cast_shadow(text)
    found = [
        PrivatePart(kind, *shadow.span(start, end), shadow.text[start:end])
        for kind, start, end in _find(shadow, user)
        if start < end
    ]
    found.sort(key=lambda part: (part.start - part.end, part.start))
    kept: list[PrivatePart] = []
    for part in found:
        place = bisect_left(kept, part.start, key=lambda other: other.start)
        after_one = place == 0 or kept[place - 1].end <= part.start
        if after_one and (place == len(kept) or part.end <= kept[place].start):
            kept.insert(place, part)
    return kept


def find_known_secrets(text: str) -> bool:
    """Whether a name or an id contains a secret of a known form."""
    return bool(find_secrets(cast_shadow(text).text))


Span = tuple[PrivateKind, int, int]


def _find(shadow: ShadowText, user: MachineUser) -> Iterator[Span]:
    text = shadow.text
    for start, end in find_secrets(text):
        yield "secret", start, end
    for start, end in _find_assigned(text):
        yield "secret", start, end
    for start, end in _find_random(text):
        yield "secret", start, end
    for start, end in _find_encoded(text, user):
        yield "secret", start, end
    yield from _find_patterns(text)
    for match in _USER_PATH.finditer(text):
        if match["name"].lower() not in _SYSTEM_USERS:
            yield "address", *match.span("name")
    for word in user.words:
        for match in re.finditer(rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)", text, re.IGNORECASE):
            yield "address", *match.span()


# Secrets beyond the known forms

_ASSIGNED = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?P<word>pass(?:word|phrase|wort|code)?|kennwort|pwd|pin|secret|api[ _-]?key|access[ _-]?key|token|credentials?)\b"
    r"[\"']?\s{0,3}(?:is|ist|was|lautet|=|:|=>|:=)\s{0,3}[\"'`]?(?P<value>[^\s\"'`,;]{4,200})"
)
_WORD = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+")
_NAME_OF_WORDS = re.compile(r"(?:[A-Z]?[a-z]{3,}){2,}\d{0,4}")
_PUBLIC = re.compile(
    r"(?i)(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+)\s+\S+|\bsha(?:1|256|384|512)[-:][A-Za-z0-9+/=]{20,}|data:[\w/+.-]+;base64,\S+"
    r"|\bdid:[a-z]+:\S+|\b(?:bafy|bafk|Qm)[A-Za-z0-9]{30,}|https?://\S+|\bSHA256:[A-Za-z0-9+/]{43}"
)
"""What is random and public: keys of others, digests, identifiers, addresses of pages."""
MIN_RANDOMNESS = 3.9
"""Bits a character."""


def _find_assigned(text: str) -> Iterator[tuple[int, int]]:
    """`password: …`. Plain words are left alone: a password is required, a token is missing."""
    for match in _ASSIGNED.finditer(text):
        value = match["value"].rstrip(".!?)")
        start = match.start("value")
        classes = sum(
            (
                any(one.isdigit() for one in value),
                any(one.islower() for one in value),
                any(one.isupper() for one in value[1:]),
                any(not one.isalnum() for one in value),
            )
        )
        is_reference = value.startswith(("secret:", "env:", "$", "<", "{", "%", "•", "*", "[", "…"))
        is_pin = match["word"].lower() in ("pin", "passcode") and value.isdigit()
        if is_pin or (classes >= 2 and any(one.isdigit() for one in value) and not is_reference):
            yield start, start + len(value)


def _find_random(text: str) -> Iterator[tuple[int, int]]:
    public = [match.span() for match in _PUBLIC.finditer(text)]
    for match in _WORD.finditer(text):
        before = bisect_right(public, match.start(), key=lambda span: span[0]) - 1
        is_public = before >= 0 and match.start() < public[before][1]
        if not is_public and _looks_random(match[0]):
            yield match.span()


def _looks_random(word: str) -> bool:
    """Upper, lower and digits mixed without a pattern. Hashes, UUIDs and names made of words are not."""
    bare = word.rstrip("=")
    if _HEX.fullmatch(bare.replace("-", "")) is not None or _NAME_OF_WORDS.fullmatch(bare) is not None:
        return False
    kinds = (any(c.isdigit() for c in bare), any(c.islower() for c in bare), any(c.isupper() for c in bare))
    if not all(kinds) or ("/" in bare.strip("/") and bare.count("/") > 2):
        return False
    pieces = [piece for piece in re.split(r"[-_/+]", bare) if piece]
    if max(len(piece) for piece in pieces) < 12 and not all(_is_mixed(piece) for piece in pieces):
        return False
    # In words the case changes at their beginning; in random text about every second letter.
    letters = [c for c in bare if c.isalpha()]
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(letters))
    mixed = sum(a.isdigit() != b.isdigit() for a, b in pairwise(bare))
    return _randomness(bare) >= MIN_RANDOMNESS and changes + mixed >= len(bare) * 0.35


def _is_mixed(piece: str) -> bool:
    return len(piece) >= 6 and any(c.isdigit() for c in piece) and not piece.islower() and not piece.isupper()


def _randomness(word: str) -> float:
    total = len(word)
    return -sum(count / total * math.log2(count / total) for count in Counter(word).values())


_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def _find_encoded(text: str, user: MachineUser) -> Iterator[tuple[int, int]]:
    """Base64 and hexadecimal text in which something private stands."""
    for match in _ENCODED.finditer(text):
        word = match[0]
        if len(word) > MAX_ENCODED:
            continue
        for decoded in _decode(word):
            if any(True for _ in _find_plain(decoded, user)):
                yield match.span()
                break


def _decode(word: str) -> Iterator[str]:
    bare = word.rstrip("=")
    attempts: list[Callable[[], bytes]] = []
    if len(bare) % 2 == 0 and _HEX.fullmatch(bare) is not None and not bare.startswith("0x"):
        attempts.append(lambda: bytes.fromhex(bare))
    attempts.append(
        lambda: base64.b64decode(
            bare + "=" * (-len(bare) % 4), altchars=b"-_" if "-" in bare or "_" in bare else None, validate=True
        )
    )
    for attempt in attempts:
        try:
            decoded = attempt().decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if decoded.isprintable() or not any(ord(one) < 9 for one in decoded):
            yield decoded


def _find_plain(text: str, user: MachineUser) -> Iterator[Span]:
    """Everything that does not need decoding again."""
    for start, end in find_secrets(text):
        yield "secret", start, end
    for start, end in _find_assigned(text):
        yield "secret", start, end
    yield from _find_patterns(text)


# Personal data


def _find_patterns(text: str) -> Iterator[Span]:
    for kind, sign, pattern, check in _PATTERNS:
        if sign.search(text) is None:
            continue
        for match in pattern.finditer(text):
            if check(match[0]):
                yield kind, *match.span()


_MAIL = re.compile(
    r"(?<![\w.+/@-])[^\W_][\w.+'-]{0,63}"
    r"(?:@|\s?[\[({]\s?(?:at|AT|@|ät)\s?[\])}]\s?)"
    r"(?:[^\W_][^\W_]{0,40}(?:-[^\W_]{1,40}){0,5}(?:\.|\s?[\[({]\s?(?:dot|DOT|punkt|\.)\s?[\])}]\s?)){1,5}[^\W\d_]{2,24}"
    r"(?![\w-]|\.[^\W_]|/[\w~]|:[^\W\d]|:[~/])"
)
_PHONE = re.compile(
    r"(?<![\w.,:#/+-])(?<!\d )"
    r"(?:\+\d{1,3}[ ./-]?(?:\(0?\d{1,5}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}"
    r"|\(\d{3}\)[ -]?\d{3}[ -]\d{4}"
    r"|\d{3}[-. ]\d{3}[-. ]\d{4}"
    r"|0\d{2,4}[ /-]\d{3,4}(?:[ -]?\d{2,4}){1,2}"
    r"|01[567]\d{8,9}"
    r"|00\d{1,3}[ /-]?\d(?:[ /-]?\d){6,11})"
    r"(?![\w-]|\.\d|,\d|:\d)"
)
_CARD = re.compile(r"(?<![\w.-])(?:\d[ ./_\n-]?){13,18}\d(?![\w-]|\.\d)")
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])", re.IGNORECASE
)
_STREET_WORDS = "Street|Str|Road|Rd|Lane|Avenue|Ave|Drive|Boulevard|Blvd|Court|Square|Terrace|Crescent|Close"
_STREET = re.compile(
    rf"(?<![\w.-])\d{{1,5}}[A-Za-z]? (?:[A-Z][\w'’-]{{1,30}} ){{1,3}}(?:{_STREET_WORDS})\b\.?(?:,? [A-Z][\w-]+(?: [A-Z]{{1,2}}\d\w? ?\d[A-Z]{{2}}| \d{{5}})?)?"
    r"|(?<![\w.-])[A-ZÄÖÜ][\wäöüß-]{1,40}(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer) \d{1,4}(?: ?[a-z])?\b(?:,? \d{5} [A-ZÄÖÜ][\wäöüß-]+)?"
)
_USER_PATH = re.compile(r"(?:/home/|/Users/|[A-Z]:\\Users\\)(?P<name>[A-Za-z0-9][\w.-]{0,40})")
_SYSTEM_USERS = frozenset({"agent", "user", "users", "ubuntu", "runner", "root", "public", "default", "shared", "node"})
_IBAN_LENGTHS = {
    "AT": 20,
    "BE": 16,
    "BG": 22,
    "CH": 21,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "EE": 20,
    "ES": 24,
    "FI": 18,
    "FR": 27,
    "GB": 22,
    "GR": 27,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IS": 26,
    "IT": 27,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MT": 31,
    "NL": 18,
    "NO": 15,
    "PL": 28,
    "PT": 25,
    "RO": 24,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "TR": 26,
    "SA": 24,
    "AE": 23,
    "IL": 23,
    "BR": 29,
    "UA": 29,
    "RS": 22,
    "GE": 22,
    "KZ": 20,
    "QA": 29,
    "SM": 27,
    "VA": 22,
}


def _digits(text: str) -> str:
    return "".join(one for one in text if one.isdigit())


def _is_mail(text: str) -> bool:
    return not re.match(r"(?i)(?:git|hg|svn)@", text) and ".." not in text


def _is_phone(text: str) -> bool:
    digits = _digits(text)
    if not 8 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    return re.fullmatch(r"\d{4}[-./ ]\d{2}[-./ ]\d{2,4}", text) is None


def _is_card(text: str) -> bool:
    digits = _digits(text)
    length = len(digits)
    issuer = (
        (digits[0] == "4" and length in (16, 19))
        or (length == 16 and (51 <= int(digits[:2]) <= 55 or 2221 <= int(digits[:4]) <= 2720))
        or (length == 15 and digits[:2] in ("34", "37"))
        or (length == 16 and (digits[:4] == "6011" or digits[:2] in ("65", "35")))
        or (length == 14 and digits[:2] in ("36", "38"))
    )
    return issuer and passes_luhn(digits) and len(set(digits)) > 1


def passes_luhn(digits: str) -> bool:
    total = 0
    for place, one in enumerate(reversed(digits)):
        value = int(one) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_iban(text: str) -> bool:
    bare = re.sub(r"[ -]", "", text).upper()
    if _IBAN_LENGTHS.get(bare[:2]) != len(bare):
        return False
    turned = bare[4:] + bare[:4]
    return int("".join(str(int(one, 36)) for one in turned)) % 97 == 1


def _always(text: str) -> bool:
    return True


_HAS_MAIL = re.compile(r"@|[\[({]\s?(?:at|AT|ät)")
_HAS_NUMBER = re.compile(r"\d.?\d")

_PATTERNS: Sequence[tuple[PrivateKind, re.Pattern[str], re.Pattern[str], Callable[[str], bool]]] = (
    ("mail", _HAS_MAIL, _MAIL, _is_mail),
    ("iban", _HAS_NUMBER, _IBAN, _is_iban),
    ("card", _HAS_NUMBER, _CARD, _is_card),
    ("phone", _HAS_NUMBER, _PHONE, _is_phone),
    ("address", re.compile(r"\d"), _STREET, _always),
)
"""A kind, what every text with it has, how it looks, and the check."""
