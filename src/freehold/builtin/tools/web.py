"""fetch."""

import asyncio

from freehold.builtin.http_client import HttpError, open_request
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext

MAX_BYTES = 4 * 1024 * 1024
MAX_TEXT = 40_000
FETCH_TIMEOUT = 120.0
"""Long, because the owner may first be asked whether the computer may connect to that host."""


async def fetch(ctx: ToolContext, url: str) -> str:
    """Get a page or a text file from the web. Pages are returned as plain text. The user decides which hosts can be reached.

    Args:
        url: An http or https address.
    """
    async with ctx.start_call(f"Fetch {url}", "fetch", {"url": url}) as tool_call:
        if not url.startswith(("http://", "https://")):
            raise ToolError(f"The address must begin with http:// or https://, not {url[:40]!r}")
        try:
            kind, data = await _get(url)
        except HttpError as error:
            raise ToolError(f"{url} cannot be fetched: {error}") from None
        except TimeoutError:
            raise ToolError(f"{url} cannot be fetched: it took longer than {FETCH_TIMEOUT:g} seconds") from None
        text = data.decode(errors="replace")
        if "html" in kind:
            from freehold.builtin.page_text import read_page

            text = read_page(text)
        await tool_call.end(f"{len(data)} bytes")
        return shorten(text, MAX_TEXT)


async def _get(url: str) -> tuple[str, bytes]:
    async with (
        asyncio.timeout(FETCH_TIMEOUT),
        open_request("GET", url, {"User-Agent": "freehold", "Accept": "*/*"}, follow_redirects=True) as answer,
    ):
        data = await answer.read(MAX_BYTES)
        if answer.status >= 400:
            raise ToolError(f"{url} answered {answer.status}: {data[:500].decode(errors='replace')}")
        return answer.headers.get("content-type", ""), data
