"""Where a Freehold is: an address that a token may be sent to."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from freehold.errors import FreeholdError


def read_address(url: str) -> str:
    """The origin of a Freehold's address, as browsers spell it. Refuses what would show the token to others."""
    parts = urlsplit(url.strip() if "://" in url else f"https://{url.strip()}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    host = (parts.hostname or "").lower()
    unusual = parts.username is not None or parts.path not in ("", "/") or bool(parts.query) or bool(parts.fragment)
    if parts.scheme not in ("http", "https") or not host or port == -1 or unusual:
        raise FreeholdError(
            "client.address",
            f"{url!r} is not the address of a Freehold",
            hint="Give one such as https://agent.example.com or http://localhost:3000",
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise FreeholdError(
            "client.plain-http",
            f"{host} would be sent your token without encryption",
            hint=f"Use https://{host}; plain http is only for this machine",
        )
    name = f"[{host}]" if ":" in host else host
    usual = port in (None, 443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{name}" if usual else f"{parts.scheme}://{name}:{port}"


def is_here(address: str) -> bool:
    """Whether an address, as `read_address` gives it, is on this machine."""
    return _is_loopback(urlsplit(address).hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
