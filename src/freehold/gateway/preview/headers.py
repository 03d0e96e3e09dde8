"""What an app inside is told of a request, and a browser of its answer.

The app is to see what it would see on its developer's own machine (`Host: localhost:5173`, an Origin to match), and
nothing of ours or of the owner's: no cookie, no token, no address. The browser is to see the preview's own name.
"""

import re
from collections.abc import Iterable, Mapping

from freehold.egress.http1 import Answer, Field
from freehold.gateway.preview.hosts import Place, is_shown
from freehold.identity.tokens import PREFIX

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "expect",  # the server has answered it
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "host",
    }
)
_ABOUT_THE_OWNER = frozenset({"forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip"})
_HANDSHAKE = frozenset(
    {
        "sec-websocket-key",
        "sec-websocket-version",
        "sec-websocket-extensions",
        "sec-websocket-protocol",
        "sec-websocket-accept",
    }
)
# They speak for the whole site or for more than one answer, and the site is not the app's.
_NOT_THE_APPS = frozenset(
    {"strict-transport-security", "x-frame-options", "clear-site-data", "alt-svc", "nel", "content-length"}
)
_OUR_COOKIES = re.compile(r"(?:__host-|__secure-|__http-|__host-http-)?freehold", re.IGNORECASE)
_HERE = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):([1-9][0-9]{0,4})(?=[/?#]|$)", re.IGNORECASE
)


def may_ask(headers: Mapping[bytes, bytes], place: Place, *, socket: bool) -> bool:
    """Whether this comes from a preview page, from the address bar, or only leads there; never from a page elsewhere."""
    origin = headers.get(b"origin")
    site = headers.get(b"sec-fetch-site", b"").decode("latin-1")
    if origin is not None and origin != b"null":
        return place.sibling(origin.decode("latin-1")) is not None
    if socket:
        return False  # every browser names the origin of a socket, and nobody else has a pass
    if origin is not None:  # hidden: by a page of the preview itself, or by somebody with a reason
        return site == "same-origin"
    return site != "cross-site" or headers.get(b"sec-fetch-mode") == b"navigate"


def for_the_app(headers: Iterable[tuple[bytes, bytes]], place: Place, *, socket: bool = False) -> list[Field]:
    """The fields of a request as the app gets them; Host and the length are the caller's to add."""
    fields = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    dropped = _HOP_BY_HOP | _ABOUT_THE_OWNER | _named_by_connection(fields) | (_HANDSHAKE if socket else frozenset())
    told: list[Field] = []
    for name, value in fields:
        if name in dropped or name.startswith("x-forwarded-"):
            continue
        if name == "cookie":
            value = "; ".join(part for part in map(str.strip, value.split(";")) if part and not is_ours(part))
            if not value:
                continue
        elif name == "authorization" and PREFIX in value:
            continue
        elif name == "origin":
            value = _origin_inside(value, place)
        elif name == "referer":
            value = _referer_inside(value, place)
            if not value:
                continue
        told.append((name, value))
    return told


def for_the_browser(answer: Answer, place: Place, *, asked_by: bytes | None) -> list[tuple[bytes, bytes]]:
    """The fields of an answer as the browser gets them, with ours: who may frame it, and who may hold on to it."""
    fields = [(name.lower(), value) for name, value in answer.end_to_end(_NOT_THE_APPS | _HANDSHAKE)]
    told: list[Field] = []
    names = {name for name, _ in fields}
    for name, value in fields:
        match name:
            case "set-cookie":
                cookie = bound_cookie(value)
                if cookie is not None:
                    told.append((name, cookie))
            case "content-security-policy":
                policy = without_framing(value)
                if policy:
                    told.append((name, policy))
            case "access-control-allow-origin":
                allowed = _allowed_origin(value, place, asked_by)
                if allowed is not None:
                    told.append((name, allowed))
            case "location" | "content-location":
                told.append((name, _address_outside(value, place)))
            case _:
                told.append((name, value))
    told.append(("content-security-policy", f"frame-ancestors 'self' {' '.join(place.family.framers)}"))
    if "cross-origin-opener-policy" not in names:
        told.append(("cross-origin-opener-policy", "same-origin-allow-popups"))
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told]


def is_ours(cookie: str) -> bool:
    """Whether a cookie, written `name=value`, has a name that only we may give; nameless ones hide one in the value."""
    name, sign, value = cookie.partition("=")
    return bool(_OUR_COOKIES.match(name.strip() if sign and name.strip() else (value or name).strip()))


def bound_cookie(cookie: str) -> str | None:
    """An app's cookie, kept to its own host and usable in the control center's frame; None when it may not be set."""
    pair, *attributes = (part.strip() for part in cookie.split(";"))
    if "=" not in pair or pair.startswith("=") or is_ours(pair):
        return None
    kept = [
        attribute
        for attribute in attributes
        if attribute.partition("=")[0].strip().lower() not in ("domain", "samesite", "secure", "partitioned", "")
    ]
    return "; ".join([pair, *kept, "Secure", "SameSite=None", "Partitioned"])


def without_framing(policies: str) -> str:
    """A content policy without its word on who may frame the page, which is not the app's to say here."""
    kept = []
    for policy in policies.split(","):
        directives = [directive.strip() for directive in policy.split(";")]
        rest = [one for one in directives if one and one.split()[0].lower() != "frame-ancestors"]
        if rest:
            kept.append("; ".join(rest))
    return ", ".join(kept)


def _named_by_connection(fields: Iterable[Field]) -> frozenset[str]:
    return frozenset(
        word.strip().lower() for name, value in fields if name == "connection" for word in value.split(",")
    )


def _origin_inside(origin: str, place: Place) -> str:
    port = place.sibling(origin)
    return origin if port is None else f"http://localhost:{port}"


def _referer_inside(referer: str, place: Place) -> str:
    scheme, _, rest = referer.partition("://")
    host, slash, path = rest.partition("/")
    port = place.sibling(f"{scheme}://{host}")
    # Whoever is not a preview of ours is the owner's business alone.
    return "" if port is None else f"http://localhost:{port}{slash}{path}"


def _allowed_origin(value: str, place: Place, asked_by: bytes | None) -> str | None:
    """Other previews may be let in by the app, as its neighbours on localhost; the control center and others never."""
    if value.strip() == "*":
        return "*"
    origin = asked_by.decode("latin-1") if asked_by is not None else ""
    port = place.sibling(origin)
    return origin if port is not None and value.strip() == f"http://localhost:{port}" else None


def _address_outside(address: str, place: Place) -> str:
    found = _HERE.match(address)
    if found is None or not is_shown(int(found[1])):
        return address
    return place.family.origin(int(found[1])) + address[found.end() :]
