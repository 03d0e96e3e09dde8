"""Freehold's own pages on the origin of a preview: errors, and the refusal without a pass."""

import base64
import hashlib
from html import escape

from starlette.types import Scope, Send

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: Canvas; color: CanvasText; }
main { max-width: 34rem; padding: 2rem; text-align: center; }
h1 { font-size: 1.25rem; font-weight: 600; margin: 0 0 .5rem; }
p { margin: .25rem 0; opacity: .75; }
code { font: .9em ui-monospace, monospace; }
.dot { width: .75rem; height: .75rem; margin: 0 auto 1.25rem; border-radius: 50%; background: #d97706; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def _policy(framers: tuple[str, ...]) -> str:
    return (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {' '.join(framers)}"
    )


def wants_page(scope: Scope) -> bool:
    """Whether a browser will show the answer, as opposed to a program reading it."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and b"text/html" in accepted


async def send_page(
    scope: Scope,
    send: Send,
    status: int,
    title: str,
    text: str,
    *,
    frame_origins: tuple[str, ...] = ("'none'",),
    retry_after: int | None = None,
) -> None:
    """HTML for browsers, one line of text for programs. With `retry_after` the page reloads after that many seconds."""
    headers = [
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", _policy(frame_origins).encode()),
    ]
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    if not wants_page(scope):
        await _answer(scope, send, status, [*headers, (b"content-type", b"text/plain; charset=utf-8")], f"{title}\n")
        return
    refresh = f'<meta http-equiv="refresh" content="{retry_after}">' if retry_after is not None else ""
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body><main><div class="dot"></div><h1>{escape(title)}</h1><p>{escape(text)}</p></main></body></html>'
    )
    await _answer(scope, send, status, [*headers, (b"content-type", b"text/html; charset=utf-8")], page)


async def _answer(scope: Scope, send: Send, status: int, headers: list[tuple[bytes, bytes]], text: str) -> None:
    prefix = "http.response"
    if scope["type"] == "websocket":
        prefix = "websocket.http.response"
        if prefix not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 4000 + status, "reason": text.strip()[:100]})
            return
    body = text.encode()
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": f"{prefix}.start", "status": status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body})
