"""A text as it is meant, beside the text as it is written: hidden characters, other widths and encodings are undone.

Each place of the shadow knows its place in the original, so that what is found there can be replaced here.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(
    r"&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});|&(?:commat|period|dot|sol|plus|hyphen|colon|equals);|%(?:25)*[0-7][0-9a-fA-F]"
    r"|\\\\*(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
)
"""HTML, addresses (also quoted twice), and the escapes of JSON and of programs."""
_MARKS = "&%\\"
"""With what an escape begins."""
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")


@dataclass(frozen=True)
class ShadowText:
    """`starts[n]` and `ends[n]`: the part of the original that the character n of the shadow stands for."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original for a part of the shadow."""
        return self.starts[start], self.ends[end - 1]


def cast_shadow(original: str) -> ShadowText:
    if original.isascii() and not any(one in original for one in _MARKS):
        return ShadowText(original, range(len(original)), range(1, len(original) + 1))
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    place = 0
    while place < len(original):
        end, meant = _read(original, place)
        for one in meant:
            text.append(one)
            starts.append(place)
            ends.append(end)
        place = end
    return ShadowText("".join(text), tuple(starts), tuple(ends))


def _read(original: str, place: int) -> tuple[int, str]:
    """Where the next character ends, and what it means: nothing, one character, or several."""
    one = original[place]
    if one in _MARKS and (found := _ESCAPE.match(original, place)) is not None:
        return found.end(), _unescape(found[0])
    if one.isascii():
        return place + 1, one
    if unicodedata.category(one) in ("Cf", "Mn", "Me"):
        return place + 1, ""
    if one in _DASHES:
        return place + 1, "-"
    if one.isdecimal():
        return place + 1, str(unicodedata.decimal(one))
    return place + 1, " " if one.isspace() else unicodedata.normalize("NFKC", one)


def _unescape(escaped: str) -> str:
    if escaped[0] == "&":
        return html.unescape(escaped)
    if escaped[0] == "%":
        return chr(int(escaped[-2:], 16))
    return chr(int(escaped.lstrip("\\")[1:], 16))
