"""A skill counts as loaded when an agent has used its own tool for it, or has read its SKILL.md."""

from pathlib import Path
from typing import Any

import pytest
from tests.skills.skill_folders import write_skill

from freehold.home import Home
from freehold.skills.library import SkillLibrary
from freehold.skills.loads import SkillLoads
from freehold.timeline import Timeline

CALLS: dict[str, dict[str, Any]] = {
    "builtin": {"title": "Skill charts", "kind": "read", "raw_input": {"name": "charts"}},
    "claude": {"title": "Load skill: charts", "raw_input": {"skill": "charts"}},
    "gemini": {"id": "activate_skill__activate_skill_1_0", "title": '"charts": Makes charts.'},
    "opencode": {"title": "skill", "raw_input": {"name": "charts"}},
    "by path": {"title": "Read", "raw_input": {"command": "cat ~/.agents/skills/charts/SKILL.md"}},
    "by place": {"title": "Read", "locations": ["/opt/agent-skills/current/charts/SKILL.md"]},
    "by version": {"title": "cat", "raw_input": {"command": ["cat", "/opt/agent-skills/versions/{digest}/SKILL.md"]}},
}
OTHERS: dict[str, dict[str, Any]] = {
    "another skill": {"title": "Skill pdf", "raw_input": {"name": "pdf"}},
    "a word": {"title": "Write charts", "raw_input": {"name": "charts"}},
    "a file of it": {"title": "Read", "raw_input": {"path": "/opt/agent-skills/current/charts/scripts/a.sh"}},
    "not ended": {"title": "Skill charts", "raw_input": {"name": "charts"}, "status": "failed"},
    "nonsense": {"title": None, "raw_input": ["skill", {"skill": 7}], "locations": "skill"},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path, tmp_path / "run")
    library = SkillLibrary(home)
    library.add(library.read(str(write_skill(tmp_path / "sources" / "charts"))))
    return home


def filled(call: dict[str, Any], digest: str) -> dict[str, Any]:
    call = {"id": "1", "status": "completed", "locations": [], **call}
    given = call.get("raw_input")
    if isinstance(given, dict) and isinstance(given.get("command"), list):
        call["raw_input"] = {"command": [word.replace("{digest}", digest) for word in given["command"]]}
    return call


def test_every_agents_way_to_load_a_skill_counts_once_a_turn(home: Home) -> None:
    digest = SkillLibrary(home).read_lock().skills["charts"].digest
    with Timeline(home.timeline) as timeline:
        loads = SkillLoads(timeline, home)
        for turn, (agent, call) in enumerate(CALLS.items()):
            for _ in range(2):
                loads.note_calls("s", turn, agent, [filled(call, digest)])
        used = SkillLoads(timeline, home).read()["charts"]
        assert used.agents == dict.fromkeys(CALLS, 1)
        assert used.count == len(CALLS)
        events = timeline.read(kinds=("skill.loaded",))
        assert [event.who for event in events] == [f"agent:{name}" for name in CALLS]
        assert events[0].data == {"skill": "charts", "digest": digest, "session": "s", "turn": 0}


def test_other_calls_do_not_count(home: Home) -> None:
    with Timeline(home.timeline) as timeline:
        loads = SkillLoads(timeline, home)
        loads.note_calls("s", 1, "builtin", [filled(call, "") for call in OTHERS.values()])
        loads.note_calls("s", None, "builtin", [filled(CALLS["builtin"], "")])
        assert loads.read() == {}
