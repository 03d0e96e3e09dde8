"""Small pages for those who are not inside: plain HTML that needs no script."""

from dataclasses import dataclass
from html import escape

from starlette.responses import HTMLResponse


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
