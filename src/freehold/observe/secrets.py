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
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{22,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|(?-i:\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35})|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|\bwhsec_[A-Za-z0-9+/=]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bdop_v1_[a-f0-9]{40,}|(?-i:\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b)"
    r"|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}|\bnsec1[a-z0-9]{50,}|\bfreehold-placeholder-[A-Za-z0-9_-]{16,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:authorization|cookie|set-cookie|password|passphrase|secret|token|api[_-]?key|private[_-]?key)$",
    re.IGNORECASE,
)


_SIGNS = (
    *("bearer", "dpop", "basic", "://", "sk-", "fh_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-"),
    *("akia", "asia", "aiza", "ya29.", "xox", "xapp-", "_live_", "_test_", "whsec_", "npm_", "pypi-", "hf_", "dop_v1_"),
    *("sg.", ":aa", "age-secret", "nsec1", "freehold-placeholder", "eyj", "-----begin"),
)
"""Every secret of a known form has one of these. A text without any, as most are, is not looked at further."""


def _has_sign(text: str) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in _SIGNS)


def mask_secrets(text: str) -> str:
    """The text with tokens, passwords in URLs and private keys masked."""
    if not _has_sign(text):
        return text
    return _SECRETS.sub(lambda found: (found["keep"] or found["keep2"] or "") + MASK, text)


def find_secrets(text: str) -> list[tuple[int, int]]:
    """Where the parts are that `mask_secrets` masks, without what it keeps before them."""
    if not _has_sign(text):
        return []
    found = []
    for match in _SECRETS.finditer(text):
        kept = match["keep"] or match["keep2"] or ""
        found.append((match.start() + len(kept), match.end()))
    return found


def is_secret_name(name: str) -> bool:
    """Whether the value of a field with this name is always masked."""
    return _SECRET_NAME.search(name) is not None
