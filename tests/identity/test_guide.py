"""The guide matches the code."""

import re
from pathlib import Path

from freehold.identity.atproto.problems import PROBLEM_TEXTS
from freehold.identity.tokens import SCOPES

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/sign-in.md").read_text()


def test_the_guide_lists_exactly_the_problems() -> None:
    assert set(re.findall(r"^\| `sign-in\.([a-z-]+)`", GUIDE, re.M)) == set(PROBLEM_TEXTS)


def test_the_guide_has_each_rule_that_the_log_names() -> None:
    rules = set(re.findall(r"^\| (\d+) \|", GUIDE, re.M))
    named: set[str] = set()
    for path in (ROOT / "src/freehold/identity/atproto").glob("*.py"):
        for numbers in re.findall(r"checklist ([\d, ]+\d|\d+)", path.read_text()):
            named |= set(re.findall(r"\d+", numbers))
    assert len(named) > 10
    assert named <= rules


def test_the_guide_has_each_scope() -> None:
    assert all(f"`{scope}`" in GUIDE for scope in SCOPES)
