"""Makes hidden characters visible, so that the owner sees exactly what a text contains."""

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
"""Letters and marks that are drawn as nothing, in categories of visible characters."""


def make_visible(text: str, *, lines: bool = True) -> str:
    """Replaces every control, format, bidirectional or invisible character by `⟨U+XXXX⟩`.

    Line ends and tabs stay if `lines`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char, lines) for char in text)


def _shown(char: str, lines: bool) -> str:
    if lines and char in "\n\t":
        return char
    category = unicodedata.category(char)
    odd_space = category == "Zs" and char != " "
    is_variation = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF
    if category in _HIDDEN or odd_space or is_variation or char in _BLANK:
        return f"⟨U+{ord(char):04X}⟩"
    return char
