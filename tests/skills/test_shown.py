"""Skills are where agents look for them, are the owner's whatever an agent has put there, and no link is followed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.skills.skill_folders import write_skill

from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, SKILL_PLACES, SKILLS_IN_USE, SKILLS_PATH
from freehold.computer.contract.spec import Mount
from freehold.home import Home
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHARTS = f"{AGENT_HOME}/.claude/skills/charts"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> SkillLibrary:
    folder = tmp_path_factory.mktemp("home")
    library = SkillLibrary(Home(folder, folder / "run"))
    for name in ("charts", "pdf"):
        library.add(read_source(str(write_skill(folder / "sources" / name, name))))
    return library


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(library: SkillLibrary) -> AsyncIterator[Computer]:
    async with Computer.start(mounts=[Mount(library.store.folder, SKILLS_PATH)]) as computer:
        yield computer


async def show(computer: Computer) -> None:
    errors = await computer.files.link_entries(AGENT_HOME, dict.fromkeys(SKILL_PLACES, SKILLS_IN_USE))
    assert errors == [None, None]


async def run(computer: Computer, command: str) -> str:
    done = await computer.run(command)
    return (done.stdout + done.stderr).decode()


async def test_each_skill_is_in_both_places_and_cannot_be_changed(computer: Computer) -> None:
    await show(computer)
    for place in SKILL_PLACES:
        assert "Makes charts" in await run(computer, f"cat ~/{place}/charts/SKILL.md")
        refused = await run(computer, f"echo x >> ~/{place}/charts/SKILL.md; echo x > ~/{place}/charts/new.md")
        assert len(refused.splitlines()) == 2  # no such permission, and a read-only file system
        assert await run(computer, f"ls ~/{place}/charts") == "SKILL.md\n"


async def test_what_an_agent_puts_in_its_place_is_moved_aside_and_kept(computer: Computer) -> None:
    for attack in (
        "rm -rf ~/.claude",
        f"rm {CHARTS}",
        f"ln -sfn /workspace/evil {CHARTS}",
        f"rm {CHARTS} && mkdir {CHARTS} && echo evil > {CHARTS}/SKILL.md",
        f"rm {CHARTS} && echo evil > {CHARTS}",
        "rm -rf ~/.claude/skills && ln -s /workspace/evil ~/.claude/skills",
        "mv ~/.claude ~/real && mkdir -p /workspace/evil/skills && ln -s /workspace/evil ~/.claude",
        "rm -rf ~/.claude ~/.replaced && ln -s /workspace/evil ~/.replaced && echo evil > ~/.claude",
    ):
        await computer.run("rm -rf ~/.claude ~/.replaced /workspace/evil && mkdir /workspace/evil")
        await show(computer)
        done = await computer.run(attack)
        assert done.exit_code == 0, done.stderr
        await show(computer)
        assert "Makes charts" in await run(computer, f"cat {CHARTS}/SKILL.md"), attack
        assert (await run(computer, f"readlink -f {CHARTS}")).startswith(f"{SKILLS_PATH}/versions/"), attack
        # Nothing was written through a link of the agent's.
        assert await run(computer, "find /workspace/evil -mindepth 1 ! -name skills") == "", attack
        kept = await run(computer, "find ~/.replaced -type f -exec cat {} +")
        assert "evil" in kept or "echo evil" not in attack, attack


async def test_own_skills_of_an_agent_stay_and_those_that_the_owner_takes_away_go(
    computer: Computer, library: SkillLibrary
) -> None:
    await computer.run("mkdir -p ~/.claude/skills/own && echo mine > ~/.claude/skills/own/SKILL.md")
    await show(computer)
    library.switch("pdf", on=False)
    await show(computer)
    assert (await run(computer, "ls ~/.claude/skills")).split() == ["charts", "own"]
    library.switch("pdf", on=True)
    await show(computer)
    assert (await run(computer, "ls ~/.claude/skills")).split() == ["charts", "own", "pdf"]


async def test_without_skills_no_folder_is_made(tmp_path: Path) -> None:
    async with Computer.start(workspace=tmp_path) as computer:
        await show(computer)
        assert await run(computer, "ls -A ~") == ""
