"""Translates the headers between a browser and an app in the computer.

The app gets what it would get on a developer's own machine (`Host: localhost:5173` and an Origin to match), and nothing
of Freehold's or the owner's: no cookie, no token, no address. The browser gets the host name of the preview.
"""

import re
from collections.abc import Iterable, Mapping

from freehold.egress.http1 import Field, HttpResponse
from freehold.gateway.preview.hosts import PreviewSite, can_preview
from freehold.identity.tokens import PREFIX

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "expect",  # already answered by the server
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
# These apply to the whole site or to more than one answer, and the site does not belong to the app.
_NOT_THE_APPS = frozenset(
    {"strict-transport-security", "x-frame-options", "clear-site-data", "alt-svc", "nel", "content-length"}
)
_OUR_COOKIES = re.compile(r"(?:__host-|__secure-|__http-|__host-http-)?freehold", re.IGNORECASE)
_HERE = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):([1-9][0-9]{0,4})(?=[/?#]|$)", re.IGNORECASE
)


def is_allowed_source(headers: Mapping[bytes, bytes], site: PreviewSite, *, socket: bool) -> bool:
    """Whether a request comes from a preview page, from the address bar, or is a navigation; not from another site's page."""
    origin = headers.get(b"origin")
    fetch_site = headers.get(b"sec-fetch-site", b"")
    if origin is not None and origin != b"null":
        return site.find_sibling_port(origin.decode("latin-1")) is not None
    if socket:
        return False  # every browser sends the origin of a socket, and only browsers have a pass
    if origin is not None:  # hidden by the sender
        return fetch_site == b"same-origin"
    return fetch_site != b"cross-site" or headers.get(b"sec-fetch-mode") == b"navigate"


def app_request_headers(
    headers: Iterable[tuple[bytes, bytes]], site: PreviewSite, *, socket: bool = False
) -> list[Field]:
    """The headers of a request for the app. The caller adds Host and the length."""
    fields = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    dropped = _HOP_BY_HOP | _ABOUT_THE_OWNER | _named_by_connection(fields) | (_HANDSHAKE if socket else frozenset())
    result: list[Field] = []
    for name, value in fields:
        if name in dropped or name.startswith("x-forwarded-"):
            continue
        if name == "cookie":
            value = "; ".join(
                part for part in map(str.strip, value.split(";")) if part and not is_freehold_cookie(part)
            )
            if not value:
                continue
        elif name == "authorization" and PREFIX in value:
            continue
        elif name == "origin":
            value = _origin_inside(value, site)
        elif name == "referer":
            value = _referer_inside(value, site)
            if not value:
                continue
        result.append((name, value))
    return result


def browser_response_headers(
    answer: HttpResponse, site: PreviewSite, *, origin: bytes | None
) -> list[tuple[bytes, bytes]]:
    """The headers of an answer for the browser, with our own: who may frame it and who may keep a reference to it."""
    fields = [(name.lower(), value) for name, value in answer.end_to_end(_NOT_THE_APPS | _HANDSHAKE)]
    result: list[Field] = []
    names = {name for name, _ in fields}
    for name, value in fields:
        match name:
            case "set-cookie":
                cookie = restrict_cookie(value)
                if cookie is not None:
                    result.append((name, cookie))
            case "content-security-policy":
                policy = remove_frame_ancestors(value)
                if policy:
                    result.append((name, policy))
            case "access-control-allow-origin":
                allowed = _allowed_origin(value, site, origin)
                if allowed is not None:
                    result.append((name, allowed))
            case "location" | "content-location":
                result.append((name, _address_outside(value, site)))
            case _:
                result.append((name, value))
    result.append(("content-security-policy", f"frame-ancestors 'self' {' '.join(site.domain.frame_origins)}"))
    if "cross-origin-opener-policy" not in names:
        result.append(("cross-origin-opener-policy", "same-origin-allow-popups"))
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in result]


def is_freehold_cookie(cookie: str) -> bool:
    """Whether a cookie `name=value` has a name reserved for Freehold. Without a name, the value is checked."""
    name, sign, value = cookie.partition("=")
    return bool(_OUR_COOKIES.match(name.strip() if sign and name.strip() else (value or name).strip()))


def restrict_cookie(cookie: str) -> str | None:
    """An app's cookie, restricted to its own host and usable in a frame; None when the app may not set it."""
    pair, *attributes = (part.strip() for part in cookie.split(";"))
    if "=" not in pair or pair.startswith("=") or is_freehold_cookie(pair):
        return None
    kept = [
        attribute
        for attribute in attributes
        if attribute.partition("=")[0].strip().lower() not in ("domain", "samesite", "secure", "partitioned", "")
    ]
    return "; ".join([pair, *kept, "Secure", "SameSite=None", "Partitioned"])


def remove_frame_ancestors(policies: str) -> str:
    """A content security policy without `frame-ancestors`: the gateway decides who may frame a preview."""
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


def _origin_inside(origin: str, site: PreviewSite) -> str:
    port = site.find_sibling_port(origin)
    return origin if port is None else f"http://localhost:{port}"


def _referer_inside(referer: str, site: PreviewSite) -> str:
    scheme, _, rest = referer.partition("://")
    host, slash, path = rest.partition("/")
    port = site.find_sibling_port(f"{scheme}://{host}")
    # Another site's address is the owner's private data.
    return "" if port is None else f"http://localhost:{port}{slash}{path}"


def _allowed_origin(value: str, site: PreviewSite, requested_by: bytes | None) -> str | None:
    """The app may allow other previews, as it would other ports of localhost; never the control center or other sites."""
    if value.strip() == "*":
        return "*"
    origin = requested_by.decode("latin-1") if requested_by is not None else ""
    port = site.find_sibling_port(origin)
    return origin if port is not None and value.strip() == f"http://localhost:{port}" else None


def _address_outside(address: str, site: PreviewSite) -> str:
    found = _HERE.match(address)
    if found is None or not can_preview(int(found[1])):
        return address
    return site.origin_of(int(found[1])) + address[found.end() :]
