"""Every promise names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROMISES = (ROOT / "docs" / "promises.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PROMISES)) - {"tests/test_promises.py"})


def test_there_are_promises() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize("named", NAMED)
def test_the_test_that_holds_a_promise_exists(named: str) -> None:
    file, _, function = named.partition("::")
    path = ROOT / file
    assert path.exists(), f"{file} does not exist"
    if function:
        assert re.search(rf"^(async )?def {function}\(", path.read_text(), re.MULTILINE), f"{named} does not exist"


def test_every_row_names_a_test() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert all("`tests/" in row for row in rows)
