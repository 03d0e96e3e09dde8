"""Tell a secret from a reference to one."""

import re
from collections.abc import Iterator

_REFERENCE = re.compile(r"(env|secret):(.+)", re.ASCII | re.DOTALL)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_SHAPES = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{16,}            # OpenAI, Anthropic and many alike
    | \b(ghp|gho|ghs|ghu|github_pat)_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,}
    | \bAKIA[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \bhf_[A-Za-z0-9]{20,}
    | \bnsec1[a-z0-9]{40,}
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.   # a JSON web token
    | ://[^/\s:@]+:[^/\s@]+@                            # a password in an address
    """,
    re.VERBOSE | re.ASCII,
)
_PLACEHOLDER = re.compile(
    r"change[-_ ]?me|replace[-_ ]?me|place[-_ ]?holder|your[-_ ]|x{3,}|\.{3}|…|<.*>|\$\{.*\}|todo|fixme|dummy|example|insert[-_ ]",
    re.IGNORECASE | re.DOTALL,
)


def parse_reference(text: str) -> tuple[str, str] | None:
    """`"env:NAME"` → `("env", "NAME")`, `"secret:name"` → `("secret", "name")`; None for anything else."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    wanted = _ENV_NAME if found[1] == "env" else _SECRET_NAME
    return (found[1], found[2]) if wanted.fullmatch(found[2]) else None


def find_named_secrets(value: object) -> Iterator[str]:
    """The name of every secret of the vault to which a part of the manifest refers."""
    if isinstance(value, str):
        reference = parse_reference(value)
        if reference is not None and reference[0] == "secret":
            yield reference[1]
    elif isinstance(value, dict):
        for below in value.values():
            yield from find_named_secrets(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from find_named_secrets(below)


def looks_secret(text: str) -> bool:
    """Whether a text holds something with the shape of a key, a token or a password."""
    return _SHAPES.search(text) is not None


def looks_placeholder(text: str) -> bool:
    """Whether a text stands where a secret should and was never filled in."""
    return _PLACEHOLDER.search(text) is not None


def names_secret(key: str) -> bool:
    """Whether the value of a key with this name must not be shown."""
    lowered = key.lower()
    return any(word in lowered for word in ("key", "secret", "token", "password", "passwd", "credential"))


def mask(text: str) -> str:
    """Enough to recognise a secret by, and no more."""
    head = text[:3] if len(text) >= 12 and text[:3].isprintable() else ""
    return f"{head}… ({len(text)} characters)"


def scrub(text: str) -> str:
    """The text with everything that has the shape of a secret masked."""
    return _SHAPES.sub(lambda found: mask(found[0]), text)
