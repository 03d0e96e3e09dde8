"""The guide is held to the code."""

import re
from pathlib import Path

from freehold.identity.atproto.problems import WORDS
from freehold.identity.tokens import SCOPES

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/sign-in.md").read_text()


def test_every_problem_is_in_the_guide_and_nothing_else() -> None:
    assert set(re.findall(r"^\| `sign-in\.([a-z-]+)`", GUIDE, re.M)) == set(WORDS)


def test_every_rule_that_the_log_names_is_in_the_guide() -> None:
    rules = set(re.findall(r"^\| (\d+) \|", GUIDE, re.M))
    named: set[str] = set()
    for path in (ROOT / "src/freehold/identity/atproto").glob("*.py"):
        for numbers in re.findall(r"checklist ([\d, ]+\d|\d+)", path.read_text()):
            named |= set(re.findall(r"\d+", numbers))
    assert len(named) > 10
    assert named <= rules


def test_every_scope_is_in_the_guide() -> None:
    assert all(f"`{scope}`" in GUIDE for scope in SCOPES)
