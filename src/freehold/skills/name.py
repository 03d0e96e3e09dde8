"""The name of a skill, which is also the name of its folder."""

import re

from freehold.errors import FreeholdError

MAX_NAME = 64
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def check_skill_name(name: str) -> str:
    """Raises `skill.malformed`."""
    if len(name) > MAX_NAME or _NAME.fullmatch(name) is None:
        raise malformed(
            f"{name[:80]!a} is not a name", f"Use 1 to {MAX_NAME} small letters and digits, with single hyphens between"
        )
    return name


def malformed(why: str, hint: str = "") -> FreeholdError:
    return FreeholdError("skill.malformed", f"SKILL.md cannot be used: {why}", hint=hint)
