"""Skills: folders with a SKILL.md that says when it is of use. Only that much is always in the model's sight."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.builtin.session import own_folder

MAX_SKILLS = 100
MAX_TEXT = 64 * 1024


@dataclass(frozen=True)
class Skill:
    name: str
    description: str
    folder: Path

    @property
    def text(self) -> str:
        return _parts(self.folder)[1]


def find_skills(cwd: Path) -> dict[str, Skill]:
    """By name; one of the workspace comes before one of the home that is called the same."""
    skills: dict[str, Skill] = {}
    for place in (
        cwd / ".agents/skills",
        cwd / ".claude/skills",
        own_folder() / "skills",
        Path.home() / ".agents/skills",
    ):
        for skill in _skills_in(place):
            if len(skills) < MAX_SKILLS:
                skills.setdefault(skill.name, skill)
    return skills


def _skills_in(place: Path) -> Iterator[Skill]:
    for file in sorted(place.glob("*/SKILL.md")):
        try:
            said, _ = _parts(file.parent)
        except (OSError, UnicodeDecodeError):
            continue
        yield Skill(said.get("name") or file.parent.name, said.get("description", "")[:500], file.parent)


def _parts(folder: Path) -> tuple[dict[str, str], str]:
    """What stands between the lines of dashes at its head, and the rest."""
    with (folder / "SKILL.md").open("rb") as file:
        text = file.read(MAX_TEXT).decode()
    if not text.startswith("---\n"):
        return {}, text
    head, found, rest = text[4:].partition("\n---")
    if not found:
        return {}, text
    pairs = (line.partition(":") for line in head.splitlines() if not line.startswith((" ", "#")))
    return {name.strip(): value.strip().strip("\"'") for name, colon, value in pairs if colon}, rest.lstrip("\n")
