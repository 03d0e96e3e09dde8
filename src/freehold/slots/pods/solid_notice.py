"""Notifications of a Solid server: a WebSocket that says when a resource has changed."""

import asyncio
import json
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

CHANNEL = "http://www.w3.org/ns/solid/notifications#WebSocketChannel2023"
PLACE = ".notifications/WebSocketChannel2023/"
"""Where the community server, which is the reference, takes subscriptions."""


async def wait_for_notice(http: httpx2.AsyncClient, topic: str, origin: str, seconds: float) -> None:
    """Returns when the server says that the resource has changed, or after so many seconds."""
    body = {"@context": ["https://www.w3.org/ns/solid/notification/v1"], "topic": topic, "type": CHANNEL}
    end = asyncio.get_running_loop().time() + seconds
    answer = await http.post(origin + PLACE, content=json.dumps(body), headers={"content-type": "application/ld+json"})
    address = ""
    if answer.is_success:
        with suppress(ValueError, AttributeError):
            address = str(answer.json().get("receiveFrom", ""))
    # Only a socket of the same server: the answer must not send us elsewhere.
    if urlsplit(address).scheme not in ("ws", "wss") or urlsplit(address).netloc != urlsplit(origin).netloc:
        await asyncio.sleep(max(0.0, end - asyncio.get_running_loop().time()))
        return
    with suppress(TimeoutError, WebSocketException):
        async with asyncio.timeout(max(0.0, end - asyncio.get_running_loop().time())):
            async with connect(address, open_timeout=None, proxy=None, max_size=64 * 1024) as socket:
                await socket.recv()
