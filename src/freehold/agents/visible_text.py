"""What the owner is shown must be what is there: characters that hide, reorder or imitate are spelled out."""

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
"""Letters and marks that draw nothing, and that no category tells of."""


def make_visible(text: str, *, lines: bool = True) -> str:
    """Every control, format, bidirectional or invisible character as `⟨U+XXXX⟩`; line ends and tabs stay if `lines`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char, lines) for char in text)


def _shown(char: str, lines: bool) -> str:
    if lines and char in "\n\t":
        return char
    category = unicodedata.category(char)
    odd_space = category == "Zs" and char != " "
    varies = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF
    if category in _HIDDEN or odd_space or varies or char in _BLANK:
        return f"⟨U+{ord(char):04X}⟩"
    return char
