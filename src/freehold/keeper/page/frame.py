"""The frame around every page, and the headers on every answer."""

from html import escape

from freehold.errors import FreeholdError
from freehold.keeper.page.style import STYLE, STYLE_HASH

# No script from anywhere, not even inline: `default-src 'none'` covers it.
POLICY = f"default-src 'none'; style-src '{STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

LOGO = (
    '<svg viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linejoin="round" aria-hidden="true">'
    '<path d="M4 14 16 4l12 10v14H4z"/><circle cx="16" cy="17" r="2.6"/><path d="M16 19.6V24" stroke-linecap="round"/></svg>'
)


def text(value: object) -> str:
    """For between tags and inside attributes. Names that are no UTF-8 are shown with their bytes spelled out."""
    return escape(str(value).encode("utf-8", "backslashreplace").decode(), quote=True)


def draw(title: str, body: str, *, home: str = "", corner: str = "", refresh: int | None = None) -> str:
    """`body` and `corner` are HTML; the rest is text."""
    again = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    where = f"<p>{text(home)}</p>" if home else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{again}<title>{text(title)} · Freehold keeper</title><style>{STYLE}</style></head><body><main>"
        f'<header>{LOGO}<div><h1><a href="/">Freehold keeper</a></h1>{where}</div>{corner}</header>{body}</main></body></html>'
    )


def draw_said(words: str, more: str = "", *, bad: bool = False) -> str:
    detail = f"<p>{text(more)}</p>" if more else ""
    return f'<div class="said{" bad" if bad else ""}" role="status"><b>{text(words)}</b>{detail}</div>'


def draw_error(error: FreeholdError, error_id: str = "") -> str:
    hint = error.hint + (f"\nfreehold logs keeper shows it as {error_id}" if error_id else "")
    body = draw_said(error.message, hint.strip(), bad=True) + '<p><a class="button" href="/">Back</a></p>'
    return draw("That did not work", body)
