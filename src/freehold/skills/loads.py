"""Which agents have loaded which skills, and how often: counted from the tool calls that they report."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.home import Home
from freehold.skills.lock import LockedSkill, read_skill_lock
from freehold.timeline import Json, Timeline

SCHEMA = """
CREATE TABLE skills_load (
    skill TEXT NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, agent TEXT NOT NULL, digest TEXT NOT NULL,
    at TEXT NOT NULL, PRIMARY KEY (skill, session, turn)
) WITHOUT ROWID;
"""
_OPENED = re.compile(r"(?:skills/(?:current/)?([a-z0-9-]{1,64})|agent-skills/versions/([0-9a-f]{64}))/SKILL\.md")
_WORD = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True)
class SkillUse:
    """`count` is the number of turns in which it was loaded, all together and by agent. `last`: when."""

    count: int
    last: str
    agents: Mapping[str, int]


class SkillLoads:
    """Blocking."""

    def __init__(self, timeline: Timeline, home: Home) -> None:
        self._timeline = timeline
        self._lock_path = home.skill_lock
        self._is_prepared = False

    def note_calls(self, session: str, turn: int | None, agent: str, calls: Sequence[Mapping[str, Any]]) -> None:
        """Count the skills that these tool calls have loaded. Each counts once a turn."""
        ended = [one for one in calls if one.get("status") == "completed" and _names_a_skill(one)]
        if not ended or turn is None:
            return
        skills = read_skill_lock(self._lock_path).skills
        for name in sorted({name for one in ended for name in find_loaded(one, skills)}):
            self._add(name, skills[name], session, turn, agent)

    def read(self) -> dict[str, SkillUse]:
        """By the name of the skill. Skills that were removed meanwhile are among them."""
        self._prepare()
        found: dict[str, SkillUse] = {}
        rows = self._timeline.query("SELECT skill, agent, count(*), max(at) FROM skills_load GROUP BY skill, agent")
        for skill, agent, count, last in rows:
            before = found.get(skill, SkillUse(0, "", {}))
            agents = {**before.agents, agent: count}
            found[skill] = SkillUse(before.count + count, max(before.last, last), agents)
        return found

    def _add(self, name: str, skill: LockedSkill, session: str, turn: int, agent: str) -> None:
        self._prepare()
        with self._timeline.transaction() as tx:
            known = tx.execute(
                "SELECT 1 FROM skills_load WHERE skill = ? AND session = ? AND turn = ?", (name, session, turn)
            ).fetchone()
            if known is None:
                data: dict[str, Json] = {"skill": name, "digest": skill.digest, "session": session, "turn": turn}
                event = tx.append("skill.loaded", data, who=f"agent:{agent}")
                tx.execute(
                    "INSERT INTO skills_load VALUES (?, ?, ?, ?, ?, ?)",
                    (name, session, turn, agent, skill.digest, event.at),
                )

    def _prepare(self) -> None:
        if not self._is_prepared:
            self._timeline.ensure_schema("skills", SCHEMA)
            self._is_prepared = True


def find_loaded(call: Mapping[str, Any], skills: Mapping[str, LockedSkill]) -> set[str]:
    """The skills that a tool call has loaded: by an agent's own tool for it, or by reading its SKILL.md."""
    text = _text_of(call)
    digests = {skill.digest: name for name, skill in skills.items()}
    found = {name or digests.get(digest, "") for name, digest in _OPENED.findall(text)}
    if "skill" in f"{call.get('id')} {call.get('title')}".lower():
        given = call.get("raw_input")
        values = given.values() if isinstance(given, Mapping) else ()
        found |= {one for one in values if isinstance(one, str)}
        found |= set(_WORD.findall(str(call.get("title"))[:200]))
    return found & skills.keys()


def _names_a_skill(call: Mapping[str, Any]) -> bool:
    return "skill" in _text_of(call).lower()


def _text_of(call: Mapping[str, Any]) -> str:
    parts = [call.get("id"), call.get("title"), call.get("raw_input"), call.get("locations")]
    return json.dumps(parts, default=str)
