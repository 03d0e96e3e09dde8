"""Small HTML pages without script, for browsers that are not signed in."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import HTMLResponse
from starlette.types import Scope

from freehold.gateway.error_responses import NOT_FOUND, NOT_SIGNED_IN, ErrorResponse


@dataclass(frozen=True)
class PageLink:
    text: str
    address: str


def render_page(*, title: str, message: str, hint: str, status: int, link: PageLink | None = None) -> HTMLResponse:
    """A page that says what happened and links to the next step."""
    from html import escape  # with a large table, and few gateways ever show such a page

    button = f'<p><a class="button" href="{escape(link.address)}">{escape(link.text)}</a></p>' if link else ""
    quiet = f'<p class="quiet">{escape(hint)}.</p>' if hint else ""
    return HTMLResponse(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{escape(title)} · Freehold</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/plain.css">
</head>
<body>
<main>
<img src="/icon.svg" alt="" width="56" height="56">
<h1>{escape(title)}</h1>
<p>{escape(message)}.</p>
{quiet}
{button}
</main>
</body>
</html>
""",
        status_code=status,
    )


def render_error_page(refusal: ErrorResponse, scope: Scope, headers: Mapping[bytes, bytes]) -> HTMLResponse | None:
    """A page for a browser that opened a wrong address; None for API clients, which get JSON.

    Without a sign-in every address gives the same page.
    """
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    path: str = scope["path"]
    if path == "/v1" or path.startswith("/v1/") or b"text/html" not in headers.get(b"accept", b""):
        return None
    # A browser opens an address without its key, so it is never known here whether it is signed in.
    if refusal not in (NOT_FOUND, NOT_SIGNED_IN):
        return None
    hint = "The address may be misspelled, or from another version"
    link = PageLink("Open the control center", "/")
    page = render_page(title="Freehold", message="There is no page here", hint=hint, status=refusal.status, link=link)
    page.raw_headers.extend(refusal.headers)
    return page
