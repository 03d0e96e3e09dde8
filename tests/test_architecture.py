"""The map in docs/architecture.md names only files that exist, and its table of rooms covers every room."""

import re
from pathlib import Path

import pytest
from tools.rooms import read_rooms

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILES = sorted(set(re.findall(r"`(src/freehold/[^`]+\.py)`", PAGE)))


def test_the_page_names_files() -> None:
    assert len(FILES) > 30


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_the_page_names_exists(file: str) -> None:
    assert (ROOT / file).is_file(), f"docs/architecture.md names {file}, which does not exist"


def test_every_folder_of_the_house_is_a_room_with_a_contract() -> None:
    folders = {path.parent.name for path in (ROOT / "src" / "freehold").glob("*/__init__.py")}
    assert folders == {room.name for room in read_rooms()}


def test_every_noun_of_the_glossary_names_a_room_that_exists() -> None:
    rows = re.findall(r"^\| \*\*.*\| (.*) \|$", PAGE.partition("## Glossary")[2].partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 40
    for cell in rows:
        for name in re.findall(r"`([a-z._]+)`", cell):
            path = ROOT / "src" / "freehold" / name.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file() or name == "web", name
