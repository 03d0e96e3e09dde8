"""The documentation site as it is built and served: complete, without dead links, and without inline script or style."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

import pytest
from tests.support.freehold import ROOT

DOCS = ROOT / "docs"
SITE = ROOT / "src/freehold/gateway/static/docs"
PAGES = [page["source"] for part in json.loads((ROOT / "web/site/contents.json").read_text()) for page in part["pages"]]
ELSEWHERE = {"adr", "reviews"}
"""Folders that are read in the repository."""
NAMES_OF_MOMENTS = {"at", "began", "created", "modified", "mtime", "seen", "set_at", "since", "updated", "used_at"}
NO_MOMENTS = {
    *(f"{kind}Import.created" for kind in ("Bead", "Event", "Memory", "Pod")),  # how many
    *("PlanHistory.since", "Revert.since"),  # entries of the history
    "StreamingText.at",  # a place in a text
}


class PageReader(HTMLParser):
    """What a page links to, its anchors, and what the content policy would stop."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.stopped: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.links += [given[name] for name in ("href", "src") if name in given]
        if "id" in given:
            self.anchors.add(given["id"])
        if tag in ("style", "iframe", "form") or (tag == "script" and not given.get("src")):
            self.stopped.append(tag)
        self.stopped += [name for name in given if name == "style" or name.startswith("on")]


@cache
def read_site() -> dict[str, PageReader]:
    return {str(page.relative_to(SITE)): PageReader(page.read_text()) for page in sorted(SITE.rglob("*.html"))}


def dead_links(site: dict[str, PageReader]) -> Iterator[str]:
    for name, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = normpath(str(PurePosixPath(name).parent / parts.path)) if parts.path else name
            if target in site:
                if parts.fragment and unquote(parts.fragment) not in site[target].anchors:
                    yield f"{name}: {link} (no such heading)"
            elif not (SITE / target).is_file():
                yield f"{name}: {link}"


def test_every_page_of_the_documentation_is_on_the_site() -> None:
    written = {
        str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in ELSEWHERE
    }
    assert sorted(PAGES) == sorted(written)
    assert {page.replace(".md", ".html") for page in PAGES} == set(read_site())


def test_no_link_of_the_site_leads_nowhere() -> None:
    assert list(dead_links(read_site())) == []


def test_no_page_has_what_the_content_policy_stops() -> None:
    assert {name: page.stopped for name, page in read_site().items() if page.stopped} == {}


def test_every_error_code_has_a_place_on_the_page_of_errors() -> None:
    codes = re.findall(r"^### `(.+)`$", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert len(codes) > 300
    assert set(codes) <= read_site()["errors.html"].anchors


def test_every_moment_of_the_api_is_text_but_the_exact_time_of_a_file() -> None:
    schemas = json.loads((DOCS / "openapi.json").read_text())["components"]["schemas"]
    numbers = {
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, given in schema.get("properties", {}).items()
        if field in NAMES_OF_MOMENTS and re.search('"type": "(number|integer)"', json.dumps(given))
    }
    assert numbers - NO_MOMENTS == {"ShownFile.mtime"}
    assert schemas["Skill"]["properties"]["added"]["format"] == "date-time"  # the name is elsewhere a number of lines
    guide = (DOCS / "guides/api.md").read_text()
    (line,) = [line for line in guide.splitlines() if line.startswith("- Moments are ")]
    assert re.findall(r"`(\w+\.\w+)`", line) == ["ShownFile.mtime"]


@pytest.mark.parametrize(
    "page", sorted((ROOT / "web/src/features").glob("*/page.ts")), ids=lambda page: page.parent.name
)
def test_the_guide_of_every_page_exists(page: Path) -> None:
    found = re.search(r'guide: "([^"#]+)#?([^"]*)"', page.read_text())
    assert found is not None
    assert found[1] in (site := read_site())
    assert not found[2] or found[2] in site[found[1]].anchors
