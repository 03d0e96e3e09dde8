"""Every agent that Freehold knows is shown the owner's skills, and loads one."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.builtin.client import relay_model
from tests.skills.permissive_client import PermissiveClient
from tests.skills.skill_folders import write_skill
from tests.support.agents import link_agents

import freehold.skills
from freehold.agents.acp.option_change import enter_asking_mode
from freehold.agents.acp.options import AgentOptions
from freehold.agents.acp.program import run_agent
from freehold.agents.catalogue.definition import ModelEndpoint
from freehold.agents.catalogue.registry import find_agent, mode_policy
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH, SKILLS_PATH
from freehold.computer.contract.spec import Mount
from freehold.home import Home
from freehold.manifest import load_manifest
from freehold.manifest.model import Manifest
from freehold.skills.checks import list_scripts
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source
from freehold.testing import ScriptedModel

SHIPPED = Path(freehold.skills.__file__).parent / "shipped"
pytestmark = pytest.mark.asyncio(loop_scope="module")
LOADS = {
    "builtin": 'CALL skill {"name": "pink-charts"}',
    "claude": 'CALL Skill {"skill": "pink-charts"}',
    "codex": "ESCALATE\nRUN cat ~/.agents/skills/pink-charts/SKILL.md",
    "gemini": 'CALL activate_skill {"name": "pink-charts"}',
    "opencode": 'CALL skill {"name": "pink-charts"}',
}
"""How the model of each agent loads a skill."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    folder = tmp_path_factory.mktemp("home")
    home = Home(folder, folder / "run")
    link_agents(home.agents, tuple(LOADS))
    script = b"#!/bin/sh\necho the script ran\n"
    source: Path = write_skill(folder / "pink-charts", "pink-charts", {"scripts/run.sh": script})
    SkillLibrary(home).add(read_source(str(source)))
    async with Computer.start(mounts=[Mount(home.agents, AGENTS_PATH), Mount(home.skills, SKILLS_PATH)]) as computer:
        yield computer


@pytest_asyncio.fixture(loop_scope="module")
async def computer_with_shipped(tmp_path: Path) -> AsyncIterator[Computer]:
    home = Home(tmp_path, tmp_path / "run")
    link_agents(home.agents, ("opencode",))
    SkillLibrary(home).add(read_source(str(SHIPPED)))
    async with Computer.start(mounts=[Mount(home.agents, AGENTS_PATH), Mount(home.skills, SKILLS_PATH)]) as computer:
        yield computer


@pytest.mark.parametrize("name", LOADS)
async def test_an_agent_is_shown_the_skill_loads_it_and_runs_its_script(computer: Computer, name: str) -> None:
    agent = find_agent(Manifest(), name)
    seen = PermissiveClient(AgentOptions())
    async with ScriptedModel() as model, asyncio.timeout(120):
        around = await relay_model(computer, model, agent.kinds[0])
        endpoint = ModelEndpoint("test", agent.kinds[0], str(around["FREEHOLD_MODEL_URL"]), "key", "scripted")
        async with run_agent(computer, agent.launch(endpoint), seen) as program:
            opened = await program.new_session([])
            session = opened["sessionId"]
            seen.options.read_session(opened)
            await enter_asking_mode(program, session, seen.options, mode_policy(Manifest(), agent), None)
            run = "RUN sh ~/.agents/skills/pink-charts/scripts/run.sh"
            for text in (f"{LOADS[name]}\n", f"ESCALATE\n{run}" if name == "codex" else run):
                await program.prompt(session, [{"type": "text", "text": text}])
    bodies = [request.body.decode() for request in model.requests]
    shown = next(body for body in bodies if "Makes charts." in body)
    assert "pink-charts" in shown
    assert "Do it." not in shown, "only the description is sent before the skill is loaded"
    assert any("Do it." in body for body in bodies)
    assert any("the script ran" in body for body in bodies)


async def test_an_agent_is_shown_the_skills_in_the_folders_that_its_description_names(
    computer: Computer, tmp_path: Path
) -> None:
    described = """
    [agents.mine]
    command = "/usr/bin/python3 -S -m freehold.builtin"
    env = { PYTHONPATH = "/opt/agents/builtin/site" }
    skills = [".mine/skills", ".config/mine/skills"]
    """
    (tmp_path / "freehold.toml").write_text(described)
    agent = find_agent(load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest, "mine")
    places = (".mine/skills", ".config/mine/skills", ".agents/skills", ".claude/skills")
    async with asyncio.timeout(120), run_agent(computer, agent.launch(None), PermissiveClient(AgentOptions())):
        shown = [await computer.run(f"sh ~/{place}/pink-charts/scripts/run.sh") for place in places]
        changed = [await computer.run(f"touch ~/{place}/pink-charts/new.md") for place in places]
    assert [one.stdout for one in shown] == [b"the script ran\n"] * 4
    assert all(b"Read-only file system" in one.stderr for one in changed)


async def test_every_shipped_skill_is_loaded_by_a_real_agent_and_its_scripts_start_sealed(
    computer_with_shipped: Computer,
) -> None:
    """By OpenCode, in one turn: each skill with its own tool for skills, then each script."""
    agent = find_agent(Manifest(), "opencode")
    shipped = read_source(str(SHIPPED))
    calls = [f"CALL skill {json.dumps({'name': one.package.name})}" for one in shipped]
    scripts = [
        f"~/.agents/skills/{one.package.name}/{script.path}" for one in shipped for script in list_scripts(one.package)
    ]
    started = " && ".join(f"{script} --help >/dev/null" for script in scripts)
    seen = PermissiveClient(AgentOptions())
    async with ScriptedModel() as model, asyncio.timeout(240):
        around = await relay_model(computer_with_shipped, model, agent.kinds[0])
        endpoint = ModelEndpoint("test", agent.kinds[0], str(around["FREEHOLD_MODEL_URL"]), "key", "scripted")
        async with run_agent(computer_with_shipped, agent.launch(endpoint), seen) as program:
            opened = await program.new_session([])
            text = "\n".join([*calls, f"RUN {started} && echo all $((20 + 2)) started", "SAY done"])
            await program.prompt(opened["sessionId"], [{"type": "text", "text": text}])
    said = model.requests[-1].body.decode()
    for one in shipped:
        body = one.package.instructions.rpartition("\n---\n")[2].strip()
        assert json.dumps(body.splitlines()[0], ensure_ascii=False)[1:-1] in said, one.package.name
    assert len(shipped) >= 20
    assert "all 22 started" in said, "the words are not in the prompt itself"
