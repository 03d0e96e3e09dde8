"""The address of another Freehold: https, or this machine."""

import re

import httpx2

from freehold.errors import FreeholdError

HERE = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_ADDRESS = 300
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", re.ASCII)


def check_address(url: str) -> str:
    """Without a slash at the end. Raises `mesh.bad-address`."""
    try:
        found = httpx2.URL(url) if len(url) <= MAX_ADDRESS else None
    except httpx2.InvalidURL:
        found = None
    is_whole = found is not None and found.scheme in ("http", "https") and _HOST.fullmatch(found.host)
    if found is None or not is_whole or found.userinfo or found.path not in ("", "/") or found.query or found.fragment:
        raise FreeholdError(
            "mesh.bad-address", f"{url[:80]!a} is not the address of a Freehold", hint="https://freehold.example.com"
        )
    if found.scheme == "http" and found.host not in HERE:
        raise FreeholdError("mesh.not-tls", f"{url[:80]} is not encrypted", hint="Use https beyond this machine")
    return str(found).rstrip("/")


def same_address(url: str) -> str:
    """One text for every spelling of an address: of its letters, of the usual port, and of this machine."""
    found = httpx2.URL(check_address(url))
    return str(found.copy_with(host="localhost") if found.host in HERE else found).rstrip("/").lower()


def is_here(url: str) -> bool:
    """Whether a checked address is on this machine."""
    return httpx2.URL(url).host in HERE
