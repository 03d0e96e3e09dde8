"""Bech32 (BIP 173, without its limit of 90 characters): how age writes its keys."""

from collections.abc import Iterable

_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def encode_bech32(prefix: str, data: bytes) -> str:
    values = _regroup(data, 8, 5, pad=True)
    check = _polymod([*_expand(prefix), *values, 0, 0, 0, 0, 0, 0]) ^ 1
    values += [(check >> 5 * (5 - place)) & 31 for place in range(6)]
    return f"{prefix}1{''.join(_ALPHABET[value] for value in values)}"


def decode_bech32(text: str) -> tuple[str, bytes]:
    """The prefix in lower case, and the data. Raises ValueError."""
    if text.lower() != text and text.upper() != text:
        raise ValueError("upper and lower case are mixed")
    prefix, one, rest = text.lower().rpartition("1")
    if not one or not prefix or len(rest) < 6 or any(letter not in _ALPHABET for letter in rest):
        raise ValueError("it has other characters than a key")
    values = [_ALPHABET.index(letter) for letter in rest]
    if _polymod([*_expand(prefix), *values]) != 1:
        raise ValueError("a character is wrong or missing")
    return prefix, bytes(_regroup(values[:-6], 5, 8, pad=False))


def _expand(prefix: str) -> list[int]:
    return [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]


def _polymod(values: Iterable[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            check ^= generator if (top >> place) & 1 else 0
    return check


def _regroup(data: Iterable[int], width: int, target: int, *, pad: bool) -> list[int]:
    gathered = bits = 0
    found = []
    for value in data:
        gathered = (gathered << width) | value
        bits += width
        while bits >= target:
            bits -= target
            found.append((gathered >> bits) & ((1 << target) - 1))
    rest = (gathered << (target - bits)) & ((1 << target) - 1)
    if pad:
        if bits:
            found.append(rest)
    elif bits >= width or rest:
        raise ValueError("its length is wrong")
    return found
