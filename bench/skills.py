"""What do 200 skills cost a session? Beside: the same session without skills, on the same machine, in turns.

    python -m bench.skills [--quick] [--json]

A session is the start of the built-in agent in a sealed computer, its new session, and the first model request of its
first turn, which has the names and descriptions of all skills in it. Links in the home are made at each start. Memory is
that of the agent's processes after the turn.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from tests.builtin.client import relay_model
from tests.support.agents import install_closure

from bench.harness import Figure, main
from freehold.agents.acp.json_rpc import Json, Later
from freehold.agents.acp.program import run_agent
from freehold.agents.catalogue.definition import ModelEndpoint
from freehold.agents.catalogue.registry import find_agent
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH, SKILLS_PATH
from freehold.computer.contract.spec import Mount
from freehold.home import Home
from freehold.manifest.model import Manifest
from freehold.skills.library import SkillLibrary
from freehold.testing import ScriptedModel

SKILLS = 200
MAX_MILLISECONDS = 20.0
MAX_MEGABYTES = 1.0
TEXT = "---\nname: skill-{number}\ndescription: {words}\n---\n\n# Work {number}\n\n{body}\n"


class Silent:
    """A client that only listens."""

    def updated(self, update: Json) -> None:
        """Nothing is kept."""

    async def paused(self) -> None:
        """Nothing is stored."""

    def permission(self, params: Json) -> Later:
        raise AssertionError(params)


def make_library(folder: Path) -> SkillLibrary:
    home = Home(folder / "home", folder / "run")
    sources = folder / "sources"
    for number in range(SKILLS):
        place = sources / f"skill-{number}"
        (place / "scripts").mkdir(parents=True)
        words = (
            f"Does the work of kind {number}, with a script and a check at the end. Use it when work {number} is asked."
        )
        (place / "SKILL.md").write_text(TEXT.format(number=number, words=words, body="A step to take. " * 200))
        (place / "scripts" / "run.sh").write_text("#!/bin/sh\necho done\n")
    home.root.mkdir()
    library = SkillLibrary(home)
    library.add(library.read(str(sources)))
    return library


async def run_session(computer: Computer) -> tuple[float, int]:
    """Milliseconds until its first model request has arrived and was answered, and the bytes of its processes then."""
    agent = find_agent(Manifest(), "builtin")
    async with ScriptedModel() as model:
        around = await relay_model(computer, model, "openai-compatible")
        endpoint = ModelEndpoint("bench", "openai-compatible", str(around["FREEHOLD_MODEL_URL"]), "key", "scripted")
        began = time.perf_counter()
        async with run_agent(computer, agent.launch(endpoint), Silent()) as program:
            opened = await program.new_session([])
            await program.prompt(str(opened["sessionId"]), [{"type": "text", "text": "SAY ok"}])
            took = (time.perf_counter() - began) * 1000
            memory = sum(row.memory for row in await computer.processes() if row.pid == program.process.pid)
        assert model.requests
        return took, memory


async def compare(rounds: int) -> list[Figure]:
    plain: list[tuple[float, int]] = []
    skilled: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        library = await asyncio.to_thread(make_library, Path(folder))
        async with AsyncExitStack() as stack:
            agents = Mount(install_closure(), AGENTS_PATH)
            without = await stack.enter_async_context(Computer.start(mounts=[agents]))
            shown = Mount(library.store.folder, SKILLS_PATH)
            having = await stack.enter_async_context(Computer.start(mounts=[agents, shown]))
            for computer in (without, having):
                await run_session(computer)  # its first start fills caches
            for _ in range(rounds):
                plain.append(await run_session(without))
                skilled.append(await run_session(having))
    base, full = (statistics.median(took for took, _ in rows) for rows in (plain, skilled))
    base_bytes, full_bytes = (statistics.median(size for _, size in rows) / 1e6 for rows in (plain, skilled))
    load = f"load {os.getloadavg()[0]:.1f}"
    return [
        Figure("a session without skills, to its first answer", base, "ms", load),
        Figure(
            f"{SKILLS} skills cost at its start",
            full - base,
            "ms",
            "without skills",
            0.0,
            f"≤ {MAX_MILLISECONDS:g} ms",
            full - base <= MAX_MILLISECONDS,
        ),
        Figure(
            f"{SKILLS} skills cost in memory",
            full_bytes - base_bytes,
            "MB",
            "without skills",
            0.0,
            f"≤ {MAX_MEGABYTES:g} MB",
            full_bytes - base_bytes <= MAX_MEGABYTES,
        ),
    ]


def measure(quick: bool) -> Iterable[Figure]:
    yield from asyncio.run(compare(7 if quick else 25))


if __name__ == "__main__":
    main("What do 200 skills cost a session?", measure)
