"""Secret values that are never shown, and masking of text that looks like a secret."""

import hmac
import re
from typing import NoReturn

MASK = "•••"


class Secret:
    """A value that only `secret.reveal()` returns.

    It is not a `str`: code that joins, prints, logs, pickles or encodes it gets the mask or an error.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled or copied")


# Patterns of secrets in any text. The group <keep> is not masked, so that the reader knows what was hidden.
_SECRETS = re.compile(
    r"(?P<keep>\b(?:bearer|dpop|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<keep2>://[^/\s:@]{0,200}:)[^/\s@]{1,200}(?=@)"
    r"|\bsk-[A-Za-z0-9_-]{8,}"
    r"|\bfh_[A-Za-z0-9_-]{8,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:authorization|cookie|set-cookie|password|passphrase|secret|token|api[_-]?key|private[_-]?key)$",
    re.IGNORECASE,
)


def mask_secrets(text: str) -> str:
    """The text with tokens, passwords in URLs and private keys masked."""
    return _SECRETS.sub(lambda found: (found["keep"] or found["keep2"] or "") + MASK, text)


def is_secret_name(name: str) -> bool:
    """Whether the value of a field with this name is always masked."""
    return _SECRET_NAME.search(name) is not None
