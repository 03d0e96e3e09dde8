"""The headers on every answer: what a browser must not do with it."""

from collections.abc import Iterable

Header = tuple[bytes, bytes]

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

_ALWAYS: tuple[Header, ...] = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
)
# Only said where https answers: browsers ignore it elsewhere, and a laptop's other ports are not ours to bind.
_STRICT_TRANSPORT: Header = (b"strict-transport-security", b"max-age=31536000")


class Hardening:
    """Adds to an answer what it does not say itself."""

    def __init__(self, *, https: bool) -> None:
        self.headers: tuple[Header, ...] = (*_ALWAYS, _STRICT_TRANSPORT) if https else _ALWAYS

    def add(self, headers: Iterable[Header]) -> list[Header]:
        said = list(headers)
        names = {name for name, _ in said}
        said.extend(header for header in self.headers if header[0] not in names)
        return said
