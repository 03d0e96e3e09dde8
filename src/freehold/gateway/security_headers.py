"""The headers on every answer: what a browser must not do with it."""

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

# Data is never a page, so it may do nothing at all.
_FOR_DATA: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_FOR_PAGES: tuple[Header, ...] = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    *_FOR_DATA[1:],
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
# Only said where https answers: browsers ignore it elsewhere, and a laptop's other ports are not ours to bind.
_STRICT_TRANSPORT: Header = (b"strict-transport-security", b"max-age=31536000")
_OURS = frozenset(name for name, _ in (*_FOR_PAGES, _STRICT_TRANSPORT))
_DATA = (b"content-type", b"application/json")


class Hardening:
    """Adds to an answer what it does not say itself."""

    def __init__(self, *, https: bool, frames: str | None = None) -> None:
        """`frames` names the one source whose pages ours may show in a frame."""
        also = (_STRICT_TRANSPORT,) if https else ()
        policy = CONTENT_POLICY if frames is None else f"{CONTENT_POLICY}; frame-src {frames}"
        self.for_data = (*_FOR_DATA, *also)
        self._for_pages = ((_FOR_PAGES[0][0], policy.encode()), *_FOR_PAGES[1:], *also)

    def add(self, headers: list[Header]) -> list[Header]:
        ours = self.for_data if _DATA in headers else self._for_pages
        said = {name for name, _ in headers}
        if said.isdisjoint(_OURS):
            return [*headers, *ours]
        return [*headers, *(header for header in ours if header[0] not in said)]
