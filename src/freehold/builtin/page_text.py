"""The words of a web page. Imported when the first page is fetched."""

import html
import re
from html.parser import HTMLParser

_SILENT = {"script", "style", "noscript", "svg", "template"}
_BREAKS = {"p", "div", "br", "li", "tr", "pre", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6"}


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
