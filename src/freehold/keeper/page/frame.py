"""The layout of every page, and the headers of every response."""

from html import escape

from freehold.errors import FreeholdError
from freehold.keeper.page.style import STYLE, STYLE_HASH

# No scripts at all, not even inline: `default-src 'none'` forbids them.
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


def escape_text(value: object) -> str:
    """Text for HTML, also inside attributes. Bytes of names that are not UTF-8 are shown as escapes."""
    return escape(str(value).encode("utf-8", "backslashreplace").decode(), quote=True)


def render_page(title: str, body: str, *, home: str = "", corner: str = "", refresh: int | None = None) -> str:
    """`body` and `corner` are HTML; the rest is text."""
    again = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    where = f"<p>{escape_text(home)}</p>" if home else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{again}<title>{escape_text(title)} · Freehold keeper</title><style>{STYLE}</style></head><body><main>"
        f'<header>{LOGO}<div><h1><a href="./">Freehold keeper</a></h1>{where}</div>{corner}</header>{body}</main></body></html>'
    )


def render_notice(message: str, more: str = "", *, bad: bool = False) -> str:
    detail = f"<p>{escape_text(more)}</p>" if more else ""
    return f'<div class="said{" bad" if bad else ""}" role="status"><b>{escape_text(message)}</b>{detail}</div>'


def render_error(error: FreeholdError, error_id: str = "") -> str:
    hint = error.next_step + (f"\nfreehold logs keeper shows it as {error_id}" if error_id else "")
    body = render_notice(error.message, hint.strip(), bad=True) + '<p><a class="button" href="./">Back</a></p>'
    return render_page("Error", body)
