"""fetch."""

import asyncio
import html
import re
from html.parser import HTMLParser

from freehold.builtin.http_client import HttpError, open_request
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext

MAX_BYTES = 4 * 1024 * 1024
MAX_TEXT = 40_000
FETCH_TIMEOUT = 120.0
"""Long, because the owner may first be asked whether the computer may connect to that host."""

_SILENT = {"script", "style", "noscript", "svg", "template"}
_BREAKS = {"p", "div", "br", "li", "tr", "pre", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6"}


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
        words = read_page(text) if "html" in kind else text
        await tool_call.end(f"{len(data)} bytes")
        return shorten(words, MAX_TEXT)


async def _get(url: str) -> tuple[str, bytes]:
    async with (
        asyncio.timeout(FETCH_TIMEOUT),
        open_request("GET", url, {"User-Agent": "freehold", "Accept": "*/*"}, follow_redirects=True) as answer,
    ):
        data = await answer.read(MAX_BYTES)
        if answer.status >= 400:
            raise ToolError(f"{url} answered {answer.status}: {data[:500].decode(errors='replace')}")
        return answer.headers.get("content-type", ""), data


def read_page(source: str) -> str:
    """The text of a page with its links and without its markup."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    text = re.sub(r"[ \t\r\f]+", " ", "".join(reader.words))
    return re.sub(r" ?\n[ \n]*\n", "\n\n", text).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._silent = 0
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BREAKS:
            self.words.append("\n" + ("#" * int(tag[1]) + " " if re.fullmatch("h[1-6]", tag) else ""))
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _BREAKS:
            self.words.append("\n")
        elif tag == "a" and self._link.startswith("http"):
            self.words.append(f" ({html.unescape(self._link)})")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)
