#!/usr/bin/env python3
"""check_page.py FILE|URL...: what can be found about accessibility in the HTML alone. Exits 1 when there is something."""

import re
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
FIELDS = {"input", "select", "textarea"}
NAMED = {
    "black": "#000000",
    "white": "#ffffff",
    "red": "#ff0000",
    "gray": "#808080",
    "grey": "#808080",
    "yellow": "#ffff00",
}


def luminance(colour: str) -> float | None:
    colour = NAMED.get(colour.strip().lower(), colour.strip().lower())
    if re.fullmatch(r"#[0-9a-f]{3}", colour):
        colour = "#" + "".join(one * 2 for one in colour[1:])
    if not re.fullmatch(r"#[0-9a-f]{6}", colour):
        return None
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[dict[str, object]] = []
        self.ids: set[str] = set()
        self.labels: set[str] = set()
        self.fields: list[tuple[int, str, str]] = []
        self.level = 0
        self.tags: set[str] = set()
        self.has_title = False

    def note(self, words: str) -> None:
        self.found.append(f"line {self.getpos()[0]}: {words}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        named = bool(
            given.get("aria-label", "").strip() or given.get("aria-labelledby") or given.get("title", "").strip()
        )
        if tag == "html" and not given.get("lang"):
            self.note("<html> has no lang")
        if tag == "img" and "alt" not in given:
            self.note("a picture has no alt")
        if tag == "img" and given.get("alt", "").strip():
            self.name_parents()
        if given.get("id"):
            if given["id"] in self.ids:
                self.note(f"the id {given['id']!r} is there twice")
            self.ids.add(given["id"])
        if tag == "label" and given.get("for"):
            self.labels.add(given["for"])
        needs_label = tag in FIELDS and given.get("type") not in ("hidden", "submit", "button", "reset", "image")
        if needs_label and not named and not any(one["tag"] == "label" for one in self.open):
            self.fields.append((self.getpos()[0], tag, given.get("id", "")))
        if re.fullmatch(r"h[1-6]", tag):
            if int(tag[1]) > self.level + 1:
                self.note(f"<{tag}> skips a level")
            self.level = int(tag[1])
        if given.get("tabindex", "0").lstrip("+").isdigit() and int(given.get("tabindex", "0")) > 0:
            self.note("a positive tabindex changes the order of the keys")
        if "onclick" in given and tag not in ("button", "a", "input", "summary") and "role" not in given:
            self.note(f"<{tag}> can be clicked, and not reached by keys: use a button")
        if (
            tag == "meta"
            and given.get("name") == "viewport"
            and re.search(r"user-scalable=(no|0)|maximum-scale=1\b", given.get("content", ""))
        ):
            self.note("zooming is switched off")
        self.check_colours(given.get("style", ""))
        if tag not in VOID:
            self.open.append({"tag": tag, "named": named, "line": self.getpos()[0], "words": ""})

    def check_colours(self, style: str) -> None:
        rules = dict(re.findall(r"(?:^|;)\s*(color|background|background-color)\s*:\s*([^;]+)", style))
        front, back = (
            luminance(rules.get("color", "")),
            luminance(rules.get("background-color", rules.get("background", ""))),
        )
        if front is not None and back is not None:
            ratio = (max(front, back) + 0.05) / (min(front, back) + 0.05)
            if ratio < 4.5:
                self.note(f"the contrast of the text is {ratio:.1f} : 1")

    def name_parents(self) -> None:
        for one in self.open:
            one["named"] = True

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.has_title = self.has_title or any(one["tag"] == "title" for one in self.open)
            self.name_parents()

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            one = self.open.pop()
            if one["tag"] in ("button", "a") and not one["named"]:
                self.found.append(f"line {one['line']}: <{one['tag']}> has no words")
            if one["tag"] == tag:
                return

    def finish(self) -> list[str]:
        self.found += [f"line {line}: <{tag}> has no label" for line, tag, id_ in self.fields if id_ not in self.labels]
        if not self.has_title:
            self.found.append("the page has no title")
        if "main" not in self.tags:
            self.found.append("the page has no <main>")
        return self.found


def main() -> int:
    count = 0
    for one in sys.argv[1:]:
        if one.startswith(("http://127.0.0.1", "http://localhost")):
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(one, timeout=20) as answer:
                text = answer.read(10_000_000).decode(errors="replace")
        else:
            text = Path(one).read_text(encoding="utf-8", errors="replace")
        page = Page()
        page.feed(text)
        found = page.finish()
        count += len(found)
        for words in found:
            print(f"{one}: {words}")
    print(f"{count} findings. Keyboard, zoom and screen reader are tried by hand.")
    return 1 if count else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
