"""Skills: folders with a SKILL.md. The model always sees their names and descriptions, and loads the rest when needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.builtin.session import data_folder

MAX_SKILLS = 100
MAX_TEXT = 64 * 1024


@dataclass(frozen=True)
class Skill:
    name: str
    description: str
    folder: Path

    @property
    def text(self) -> str:
        return _read_parts(self.folder)[1]


def find_skills(cwd: Path) -> dict[str, Skill]:
    """By name. A skill of the workspace wins over one of the home folder with the same name."""
    skills: dict[str, Skill] = {}
    for place in (
        cwd / ".agents/skills",
        cwd / ".claude/skills",
        data_folder() / "skills",
        Path.home() / ".agents/skills",
    ):
        for skill in _skills_in(place):
            if len(skills) < MAX_SKILLS:
                skills.setdefault(skill.name, skill)
    return skills


def _skills_in(place: Path) -> Iterator[Skill]:
    for file in sorted(place.glob("*/SKILL.md")):
        try:
            fields, _ = _read_parts(file.parent)
        except (OSError, UnicodeDecodeError):
            continue
        yield Skill(fields.get("name") or file.parent.name, fields.get("description", "")[:500], file.parent)


def _read_parts(folder: Path) -> tuple[dict[str, str], str]:
    """The fields of the front matter, and the rest."""
    with (folder / "SKILL.md").open("rb") as file:
        text = file.read(MAX_TEXT).decode()
    if not text.startswith("---\n"):
        return {}, text
    head, found, rest = text[4:].partition("\n---")
    if not found:
        return {}, text
    pairs = (line.partition(":") for line in head.splitlines() if not line.startswith((" ", "#")))
    return {name.strip(): value.strip().strip("\"'") for name, colon, value in pairs if colon}, rest.lstrip("\n")
