"""Small pages for those who are not inside: plain HTML that needs no script."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from starlette.responses import HTMLResponse
from starlette.types import Scope

from freehold.gateway.refusals import NOT_FOUND, NOT_SIGNED_IN, Refusal


@dataclass(frozen=True)
class Link:
    words: str
    address: str


def show_page(*, title: str, message: str, hint: str, status: int, link: Link | None = None) -> HTMLResponse:
    """A page that says what happened and where to go from there."""
    way_out = f'<p><a class="button" href="{escape(link.address)}">{escape(link.words)}</a></p>' if link else ""
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
<link rel="stylesheet" href="/door.css">
</head>
<body>
<main>
<img src="/icon.svg" alt="" width="56" height="56">
<h1>{escape(title)}</h1>
<p>{escape(message)}.</p>
<p class="quiet">{escape(hint)}.</p>
{way_out}
</main>
</body>
</html>
""",
        status_code=status,
    )


def refusal_page(refusal: Refusal, scope: Scope, headers: Mapping[bytes, bytes]) -> HTMLResponse | None:
    """What a browser shows that was led to a wrong address; None where the API's shape is right.

    It tells no more than the refusal does: a stranger sees the same page at every address.
    """
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    path: str = scope["path"]
    if path == "/v1" or path.startswith("/v1/") or b"text/html" not in headers.get(b"accept", b""):
        return None
    if refusal is NOT_FOUND:
        hint, link = "The address may be misspelled, or from another version", Link("To the control center", "/")
    elif refusal is NOT_SIGNED_IN:
        hint, link = "Sign in to go on", Link("Sign in", "/sign-in")
    else:
        return None
    page = show_page(title="Freehold", message=refusal.message, hint=hint, status=refusal.status, link=link)
    page.raw_headers.extend(refusal.headers)
    return page
