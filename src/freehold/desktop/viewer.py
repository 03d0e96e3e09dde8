"""What a browser gets on the origin of the desktop: the viewer of this package, and one socket with the picture.

The viewer is ours and not the computer's, so what it does with the clipboard is decided here and not inside.
"""

import asyncio
import json
from contextlib import suppress
from importlib.resources import files

from starlette.types import Receive, Scope, Send

from freehold.computer.library.tunnel import Tunnel
from freehold.desktop.section import DesktopSection
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import PreviewSite
from freehold.gateway.preview.pages import send_page
from freehold.gateway.socket_protocol import raise_message_limit

SOCKET_PATH = "/socket"
MAX_MESSAGE = 1024 * 1024
READ_SIZE = 64 * 1024
ENDED = 4410
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/viewer.js": ("viewer.js", "text/javascript; charset=utf-8"),
    "/viewer.css": ("viewer.css", "text/css; charset=utf-8"),
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; frame-ancestors {}"


async def send_viewer_file(section: DesktopSection, site: PreviewSite, scope: Scope, send: Send) -> None:
    path: str = scope["path"]
    if path == "/settings.json":
        body, kind = json.dumps({"clipboard": section.clipboard}).encode(), "application/json"
    elif path in _FILES:
        name, kind = _FILES[path]
        source = files("freehold.gateway").joinpath("static", "desktop", name)
        body = await asyncio.to_thread(source.read_bytes)
    else:
        await send_page(scope, send, 404, "There is no such page", "", frame_origins=site.domain.frame_origins)
        return
    reads = "self" if section.accepts_clipboard else ""
    writes = "self" if section.sends_clipboard else ""
    headers = {
        "content-type": kind,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "content-security-policy": _POLICY.format(" ".join(site.domain.frame_origins)),
        "permissions-policy": f"clipboard-read=({reads}), clipboard-write=({writes}), camera=(), microphone=(), geolocation=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def relay_viewer(tunnel: Tunnel, scope: Scope, receive: Receive, send: Send) -> None:
    """Until one side closes. Each message is a piece of the stream in its direction."""
    await receive()  # the browser's request to connect
    if scope["path"] != SOCKET_PATH:
        await send({"type": "websocket.close", "code": 4404, "reason": "not found"})
        return
    raise_message_limit(scope, MAX_MESSAGE)
    await send({"type": "websocket.accept"})
    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_to_the_desktop(tunnel, receive))
        inward = group.create_task(_to_the_browser(tunnel, send))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        outward.cancel()
        inward.cancel()


async def _to_the_desktop(tunnel: Tunnel, receive: Receive) -> None:
    with suppress(FreeholdError):
        while (message := await receive())["type"] == "websocket.receive":
            await tunnel.write(message.get("bytes") or b"")


async def _to_the_browser(tunnel: Tunnel, send: Send) -> None:
    with suppress(FreeholdError, OSError):
        while data := await tunnel.read(READ_SIZE):
            await send({"type": "websocket.send", "bytes": data})
    with suppress(OSError):
        await send({"type": "websocket.close", "code": ENDED, "reason": "the desktop has ended"})
