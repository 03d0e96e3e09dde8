"""Values that must never be shown, and a net for those that slipped through."""

import hmac
import re
from typing import NoReturn

MASK = "•••"


class Secret:
    """A value that shows itself only to who asks for it by name: `secret.reveal()`.

    Not a `str` on purpose: what joins, prints, logs, pickles or encodes it gets the mask or an error.
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
        raise TypeError("a Secret is not copied to other places")


# What a secret looks like, wherever it stands. A part in <keep> stays, so that the reader knows what was hidden.
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


def mask(text: str) -> str:
    """The text without anything that looks like a token, a password in an address or a private key."""
    return _SECRETS.sub(lambda found: (found["keep"] or found["keep2"] or "") + MASK, text)


def names_a_secret(name: str) -> bool:
    """Whether a field of this name is never shown, whatever it holds."""
    return _SECRET_NAME.search(name) is not None
