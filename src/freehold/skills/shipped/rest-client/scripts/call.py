#!/usr/bin/env python3
"""call.py METHOD URL [--json FILE|-] [--header "Name: value"]... [--pages N] [--out FILE]: one HTTP request, with patience."""

import argparse
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

MAX_TRIES, MAX_WAIT, MAX_BODY = 5, 60.0, 20_000_000


def send(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    for attempt in range(1, MAX_TRIES + 1):
        request = urllib.request.Request(url, body, headers, method=method)
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                status, found, data = answer.status, dict(answer.headers.items()), answer.read(MAX_BODY)
        except urllib.error.HTTPError as error:
            status, found, data = error.code, dict(error.headers.items()), error.read(MAX_BODY)
        except OSError as error:
            raise SystemExit(f"{url} cannot be reached: {error}") from None
        print(f"{method} {url} → {status} in {time.monotonic() - began:.2f} s, {len(data)} bytes", file=sys.stderr)
        if status not in (429, 503) or attempt == MAX_TRIES:
            break
        said = {name.lower(): value for name, value in found.items()}.get("retry-after", "")
        wait = min(float(said) if said.isdigit() else 2.0**attempt, MAX_WAIT)
        print(f"The server asks to wait: again in {wait:g} s", file=sys.stderr)
        time.sleep(wait)
    return status, {name.lower(): value for name, value in found.items()}, data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", type=str.upper)
    parser.add_argument("url")
    parser.add_argument("--json", dest="body")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    headers = {"accept": "application/json"} | dict(re.split(r":\s*", one, maxsplit=1) for one in given.header)
    body = None
    if given.body is not None:
        text = sys.stdin.read() if given.body == "-" else Path(given.body).read_text()
        body = json.dumps(json.loads(text)).encode()
        headers["content-type"] = "application/json"
    url, pages, status = given.url, [], 0
    for _ in range(given.pages):
        status, found, data = send(given.method, url, body, headers)
        try:
            pages.append(json.loads(data))
        except ValueError:
            pages.append(data.decode(errors="replace"))
        following = re.search(r'<([^>]+)>;\s*rel="?next', found.get("link", ""))
        if status >= 400 or not following:
            break
        after = urllib.parse.urljoin(url, following[1])
        if urllib.parse.urlsplit(after).netloc != urllib.parse.urlsplit(url).netloc:
            print(f"The next page is on another host, and is not read: {after}", file=sys.stderr)
            break
        url = after
    content = (
        pages[0] if len(pages) == 1 else [row for page in pages for row in (page if isinstance(page, list) else [page])]
    )
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text + "\n")
        print(f"Wrote {given.out}", file=sys.stderr)
    return 0 if status < 400 else 1


if __name__ == "__main__":
    sys.exit(main())
