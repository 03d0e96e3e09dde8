"""The syntax of handles, DIDs, host names and origins. Each value is checked before it is used."""

import re
from urllib.parse import urlsplit

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOSTNAME = re.compile(rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?")
_PLC = re.compile(r"did:plc:[a-z2-7]{24}")

RESERVED = ("alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion")


def is_hostname(text: str) -> bool:
    """A lower-case DNS name of at least two labels, the last not a number; so an IP address never matches."""
    return len(text) <= 253 and _HOSTNAME.fullmatch(text) is not None


def is_handle(text: str) -> bool:
    """A host name that may be a handle. Reserved top-level names such as `local` are refused."""
    return is_hostname(text) and text.rsplit(".", 1)[1] not in RESERVED


def is_did(text: str) -> bool:
    """The two kinds that AT Protocol supports: did:plc, and did:web with a host name only."""
    return _PLC.fullmatch(text) is not None or (text.startswith("did:web:") and is_hostname(text[8:]))


def normalize_handle(text: str) -> str:
    """Accepts what people type: a leading @, capitals, surrounding spaces, a trailing dot."""
    return text.strip().removeprefix("@").removesuffix(".").lower()


def is_origin(text: str, plain: frozenset[str] = frozenset()) -> bool:
    """https, a host and an optional port, written as browsers write it. `plain` lists exceptions."""
    if text in plain:
        return True
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    if parts.scheme != "https" or not is_hostname(host) or port in (0, 443):
        return False
    return text == f"https://{host}" + ("" if port is None else f":{port}")
