"""Skills: folders with a SKILL.md. The model always sees their names and descriptions, and loads the rest when needed."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.builtin.session import data_folder

IN_USE = Path("/opt/agent-skills/current")
"""The skills that the owner has added. No agent can change them."""
MAX_SKILLS = 400
MAX_HEAD = 16 * 1024
MAX_TEXT = 512 * 1024
MAX_DESCRIPTION = 1024


@dataclass(frozen=True)
class Skill:
    name: str
    description: str
    folder: Path

    @property
    def text(self) -> str:
        """The instructions, without the head."""
        return _split(_read(self.folder, MAX_TEXT))[1]


def find_skills(cwd: Path) -> dict[str, Skill]:
    """By name. A skill that the owner has added wins over one of the workspace, and that over one of the home folder."""
    skills: dict[str, Skill] = {}
    for place in (
        IN_USE,
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
    try:
        names = sorted(os.listdir(place))  # noqa: PTH208  # pathlib takes several times as long for hundreds of skills
    except OSError:
        return
    for name in names:
        folder = f"{place}/{name}"
        if place != IN_USE and _leads_to_use(folder):
            continue
        try:
            fields = read_fields(_split(_read(folder, MAX_HEAD))[0])
        except (OSError, UnicodeDecodeError):
            continue
        yield Skill(fields.get("name") or name, fields.get("description", "")[:MAX_DESCRIPTION], Path(folder))


def _leads_to_use(folder: str) -> bool:
    """Whether it is one of the links to the owner's skills, which were read in their own place."""
    try:
        return os.readlink(folder).startswith(f"{IN_USE}/")  # noqa: PTH115
    except OSError:
        return False


def _read(folder: str | Path, most: int) -> str:
    with open(f"{folder}/SKILL.md", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read(most).decode(errors="ignore" if most == MAX_HEAD else "strict")


def _split(text: str) -> tuple[str, str]:
    """The head, which stands between two lines `---`, and the rest."""
    if not text.startswith("---\n"):
        return "", text
    head, found, rest = text[4:].partition("\n---")
    return (head, rest.lstrip("\n")) if found else ("", text)


def read_fields(head: str) -> dict[str, str]:
    """The fields of the head that are texts: on one line, quoted, or on indented lines below their name."""
    fields: dict[str, str] = {}
    name = ""
    for line in head.splitlines():
        if line.startswith((" ", "\t")):
            if name:
                fields[name] = f"{fields[name]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip() if colon and not line.startswith("#") else ""
        if name:
            fields[name] = "" if value.strip() in (">", "|", ">-", "|-", ">+", "|+") else value.strip()
    return {name: _unquote(value) for name, value in fields.items()}


def _unquote(value: str) -> str:
    if value.startswith('"') and value.endswith('"'):
        try:
            return str(json.loads(value))
        except ValueError:
            return value.strip('"')
    return value[1:-1].replace("''", "'") if len(value) > 1 and value[0] == value[-1] == "'" else value
