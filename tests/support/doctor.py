"""Reads what `freehold doctor --json` says about a computer that is not of this process."""

import json

from freehold.computer.escapes import ESCAPES
from freehold.doctor.examination import SHOWN_BY_ENGINE

ATTEMPTS_WHERE_ATTACHED = {one.name for one in ESCAPES if not one.then_stop and one.name not in SHOWN_BY_ENGINE}
"""In a computer that somebody else starts, the owner's own."""


def check_attempts(told: str, expected: set[str]) -> None:
    """Every one of these attempts was made, and refused."""
    report = json.loads(told)
    assert [one for one in report["attempts"] if one["outcome"] != "refused"] == []
    assert {one["name"] for one in report["attempts"]} == expected
    assert report["ok"], report
