#!/usr/bin/env python3
"""fetch.py URL [FOLDER]: reads a page as text and keeps it with its address, time and hash. FOLDER is research."""

import hashlib
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

MAX_BYTES = 5_000_000
SKIPPED = {"script", "style", "noscript", "svg", "template"}
BLOCKS = {"p", "div", "li", "br", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre"}


class Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag in SKIPPED
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in SKIPPED and self.depth > 0
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.parts.append(data)


class SameHost(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, file, code, words, headers, url):  # type: ignore[no-untyped-def]
        old, new = urllib.parse.urlsplit(request.full_url), urllib.parse.urlsplit(url)
        if old.hostname != new.hostname:
            raise SystemExit(f"{request.full_url} leads to another host: {url}\nFetch that address if you want it.")
        return super().redirect_request(request, file, code, words, headers, url)


def main() -> int:
    url, folder = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "research")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise SystemExit(f"{url} is not a web address")
    request = urllib.request.Request(url, headers={"user-agent": "research/1", "accept": "text/html,*/*;q=0.5"})
    try:
        with urllib.request.build_opener(SameHost).open(request, timeout=60) as answer:
            data, final, kind = answer.read(MAX_BYTES + 1), answer.url, answer.headers.get_content_type()
            charset = answer.headers.get_content_charset() or "utf-8"
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url} answered {error.code} {error.reason}") from None
    except OSError as error:
        raise SystemExit(f"{url} could not be read: {error}") from None
    text = data[:MAX_BYTES].decode(charset, "replace")
    if kind == "text/html":
        parser = Text()
        parser.feed(text)
        text = re.sub(r"[ \t]+", " ", "".join(parser.parts))
        text = re.sub(r"\s*\n\s*", "\n", text).strip()
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(data).hexdigest()
    place = folder / f"{digest[:12]}.txt"
    place.write_text(text + "\n")
    facts = {
        "url": final,
        "read": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "sha256": digest,
        "file": place.name,
    }
    with (folder / "sources.jsonl").open("a") as file:
        file.write(json.dumps(facts) + "\n")
    print(f"{final}\n{place}: {len(text)} characters{' (cut off)' if len(data) > MAX_BYTES else ''}\n")
    print(text[:4000])
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
