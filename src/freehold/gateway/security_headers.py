"""The security headers on every answer."""

Header = tuple[bytes, bytes]

CONTENT_SECURITY_POLICY = "; ".join(
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

# JSON is never shown as a page, so it may load nothing.
_FOR_DATA: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_FOR_PAGES: tuple[Header, ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    *_FOR_DATA[1:],
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(self), geolocation=()"),
)
# Only with https: browsers ignore it otherwise, and it would apply to other ports of the same machine.
_STRICT_TRANSPORT: Header = (b"strict-transport-security", b"max-age=31536000")
_OURS = frozenset(name for name, _ in (*_FOR_PAGES, _STRICT_TRANSPORT))
_DATA = (b"content-type", b"application/json")


class SecurityHeaders:
    """Adds the headers that an answer does not set itself."""

    def __init__(self, *, https: bool, frames: str | None = None) -> None:
        """`frames` is the one source whose pages may be shown in a frame of our pages."""
        also = (_STRICT_TRANSPORT,) if https else ()
        policy = CONTENT_SECURITY_POLICY if frames is None else f"{CONTENT_SECURITY_POLICY}; frame-src {frames}"
        self.for_data = (*_FOR_DATA, *also)
        self._for_pages = ((_FOR_PAGES[0][0], policy.encode()), *_FOR_PAGES[1:], *also)

    def add(self, headers: list[Header]) -> list[Header]:
        ours = self.for_data if _DATA in headers else self._for_pages
        present = {name for name, _ in headers}
        if present.isdisjoint(_OURS):
            return [*headers, *ours]
        return [*headers, *(header for header in ours if header[0] not in present)]


PLAIN = SecurityHeaders(https=False)
