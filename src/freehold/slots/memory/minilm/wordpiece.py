"""The tokens of a text as BERT reads it: lower case, without accents, known pieces of words."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD = 100
"""Characters. A longer word is one unknown token."""


class WordPieces:
    """`vocabulary`: every piece in the order of its number. Pieces within a word begin with `##`."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.begin, self.end, self._unknown = (self._numbers[one] for one in (BEGIN, END, UNKNOWN))
        self._split = lru_cache(maxsize=20_000)(self._split_word)

    def encode(self, text: str, longest: int) -> list[int]:
        """The numbers of the tokens with the marks of begin and end, cut to `longest`."""
        found = [self.begin]
        for word in _words(text):
            found += self._split(word)
            if len(found) >= longest:
                del found[longest - 1 :]
                break
        found.append(self.end)
        return found

    def _split_word(self, word: str) -> tuple[int, ...]:
        if len(word) > MAX_WORD:
            return (self._unknown,)
        found, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return (self._unknown,)
            found.append(number)
            start = end
        return tuple(found)


def _words(text: str) -> Iterator[str]:
    """Words and single punctuation marks."""
    cleaned = "".join(_clean(one) for one in text).lower()
    plain = "".join(one for one in unicodedata.normalize("NFD", cleaned) if unicodedata.category(one) != "Mn")
    for word in plain.split():
        start = 0
        for place, one in enumerate(word):
            if _is_punctuation(one):
                if place > start:
                    yield word[start:place]
                yield one
                start = place + 1
        if start < len(word):
            yield word[start:]


@lru_cache(maxsize=20_000)
def _clean(one: str) -> str:
    if one in "\t\n\r" or unicodedata.category(one) == "Zs":
        return " "
    if one in "\0\ufffd" or unicodedata.category(one) in ("Cc", "Cf", "Co"):
        return ""
    return f" {one} " if _is_chinese(ord(one)) else one


def _is_chinese(code: int) -> bool:
    """These scripts have no spaces between words, so that each character is a word."""
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


@lru_cache(maxsize=20_000)
def _is_punctuation(one: str) -> bool:
    return (one.isascii() and one.isprintable() and not one.isalnum() and one != " ") or unicodedata.category(
        one
    ).startswith("P")
