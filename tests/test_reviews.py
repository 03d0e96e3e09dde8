"""The reviews in docs/reviews answer every line of their list, and the tests that they name exist."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REVIEWS = sorted((ROOT / "docs" / "reviews").glob("*.md"))
ROW = re.compile(r"^\| (?P<first>[^|]+) \| (?P<answer>[^|]+) \| (?P<shown>[^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")

# The number of requirements up to level 2 in each section of ASVS 5.0. They are numbered from 1 without a gap.
ASVS_SECTIONS = {
    "1.1": 2, "1.2": 9, "1.3": 11, "1.4": 3, "1.5": 2, "2.1": 3, "2.2": 3, "2.3": 4, "2.4": 1, "3.2": 2, "3.3": 4,
    "3.4": 6, "3.5": 5, "3.7": 2, "4.1": 3, "4.2": 1, "4.3": 2, "4.4": 4, "5.1": 1, "5.2": 3, "5.3": 2, "5.4": 3,
    "6.1": 3, "6.2": 12, "6.3": 4, "6.4": 4, "6.5": 5, "6.6": 3, "6.8": 4, "7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5,
    "7.5": 2, "7.6": 2, "8.1": 2, "8.2": 3, "8.3": 1, "8.4": 1, "9.1": 3, "9.2": 4, "10.1": 2, "10.2": 2, "10.3": 4,
    "10.4": 11, "10.5": 5, "10.6": 2, "10.7": 3, "11.1": 2, "11.2": 3, "11.3": 3, "11.4": 4, "11.5": 1, "11.6": 1,
    "12.1": 3, "12.2": 2, "12.3": 4, "13.1": 1, "13.2": 5, "13.3": 2, "13.4": 5, "14.1": 2, "14.2": 4, "14.3": 3,
    "15.1": 3, "15.2": 3, "15.3": 7, "16.1": 1, "16.2": 5, "16.3": 4, "16.4": 3, "16.5": 3, "17.1": 1, "17.2": 4,
    "17.3": 2,
}  # fmt: skip


def list_rows(page: Path) -> list[re.Match[str]]:
    heads = {"requirement", "advisory", "---"}
    return [row for row in ROW.finditer(page.read_text()) if row["first"].strip("-") and row["first"] not in heads]


def expand(text: str) -> list[str]:
    """`1.2.3, 1.2.5-1.2.7` → each of them."""
    found = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        section, _, number = first.rpartition(".")
        end = int(last.rpartition(".")[2]) if last else int(number)
        found += [f"{section}.{each}" for each in range(int(number), end + 1)]
    return found


def test_every_requirement_of_asvs_is_answered_once() -> None:
    wanted = [f"{section}.{number}" for section, count in ASVS_SECTIONS.items() for number in range(1, count + 1)]
    page = ROOT / "docs" / "reviews" / "owasp-asvs-5.md"
    answered = [each for row in list_rows(page) for each in expand(row["first"])]
    assert len(wanted) == 253
    assert Counter(answered) == Counter(wanted)


@pytest.mark.parametrize("page", REVIEWS, ids=lambda page: page.stem)
def test_a_review_names_tests_that_exist_or_says_why_there_is_none(page: Path) -> None:
    rows = list_rows(page)
    assert rows
    for row in rows:
        tests = TEST.findall(row["shown"])
        assert tests or row["shown"].startswith(("not applicable", "no test:")), row["first"]
        for file, name in tests:
            text = (ROOT / file).read_text()
            assert not name or re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), f"{file}::{name}"
