"""The address of a Freehold, checked before a token is sent to it."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from freehold.errors import FreeholdError


def read_address(url: str) -> str:
    """The origin of an address, as browsers write it. Refuses plain http to another machine, which would leak the token.

    `freehold.localhost` becomes `localhost`: browsers know the names below it, resolvers of other programs often do not.
    """
    parts = urlsplit(url.strip() if "://" in url else f"https://{url.strip()}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    host = (parts.hostname or "").lower()
    host = "localhost" if host == "freehold.localhost" else host
    unusual = parts.username is not None or parts.path not in ("", "/") or bool(parts.query) or bool(parts.fragment)
    if parts.scheme not in ("http", "https") or not host or port == -1 or unusual:
        raise FreeholdError(
            "client.address",
            f"{url!r} is not a valid address of a Freehold",
            hint="Give an address such as https://agent.example.com or http://localhost:3000",
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise FreeholdError(
            "client.plain-http",
            f"Plain http would send your token to {host} without encryption",
            hint=f"Use https://{host}; plain http works only for this machine",
        )
    name = f"[{host}]" if ":" in host else host
    usual = port in (None, 443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{name}" if usual else f"{parts.scheme}://{name}:{port}"


def is_local(address: str) -> bool:
    """Whether an address from `read_address` is on this machine."""
    return _is_loopback(urlsplit(address).hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
