"""Keys as people see them (NIP-19): `npub1…` for a public key, `nsec1…` for a secret one."""

from collections.abc import Iterable, Sequence

_LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
KEY_BYTES = 32


class BadKeyText(ValueError):
    """The text is not a key. The message says why, and does not contain the text."""


def encode_key(prefix: str, key: bytes) -> str:
    data = _regroup(key, 8, 5, is_padded=True)
    polymod = _polymod([*_expand(prefix), *data, *([0] * 6)]) ^ 1
    check = [(polymod >> 5 * (5 - place)) & 31 for place in range(6)]
    return prefix + "1" + "".join(_LETTERS[value] for value in (*data, *check))


def decode_key(prefix: str, text: str) -> bytes:
    """The 32 bytes. Raises `BadKeyText`."""
    text = text.strip()
    if text.lower() != text and text.upper() != text:
        raise BadKeyText("it mixes small and capital letters")
    text = text.lower()
    if not text.startswith(f"{prefix}1"):
        raise BadKeyText(f"it does not begin with {prefix}1")
    letters = text[len(prefix) + 1 :]
    if len(letters) < 6 or any(letter not in _LETTERS for letter in letters):
        raise BadKeyText("it has a letter that such a key cannot have")
    values = [_LETTERS.index(letter) for letter in letters]
    if _polymod([*_expand(prefix), *values]) != 1:
        raise BadKeyText("a letter of it is wrong")
    key = bytes(_regroup(values[:-6], 5, 8, is_padded=False))
    if len(key) != KEY_BYTES:
        raise BadKeyText("it is too long or too short")
    return key


def is_public_key(text: str) -> bool:
    """Whether this is `npub1…`, or 64 hex digits."""
    try:
        return len(bytes.fromhex(text)) == KEY_BYTES if len(text) == 2 * KEY_BYTES else bool(decode_key("npub", text))
    except ValueError:
        return False


def _expand(prefix: str) -> list[int]:
    return [*(ord(letter) >> 5 for letter in prefix), 0, *(ord(letter) & 31 for letter in prefix)]


def _polymod(values: Iterable[int]) -> int:
    found = 1
    for value in values:
        top = found >> 25
        found = (found & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            if (top >> place) & 1:
                found ^= generator
    return found


def _regroup(data: Sequence[int], from_bits: int, to_bits: int, *, is_padded: bool) -> list[int]:
    held = bits = 0
    found = []
    for value in data:
        held = (held << from_bits) | value
        bits += from_bits
        while bits >= to_bits:
            bits -= to_bits
            found.append((held >> bits) & ((1 << to_bits) - 1))
    rest = (held << (to_bits - bits)) & ((1 << to_bits) - 1)
    if is_padded and bits:
        found.append(rest)
    elif not is_padded and (bits >= from_bits or rest):
        raise BadKeyText("its end is wrong")
    return found
