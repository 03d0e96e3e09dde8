"""`python -m tools.agent_matrix [NAME…]`: what each agent can do, tried in a complete Freehold, written into docs/guides/agents.md.

Real agents, installed by tools/install-test-agents, with the scripted model. Without names all of them are tried; with
names the other rows stay as they are. With `--check` nothing is written, and it exits 1 when a row differs.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.agents import DESCRIPTIONS
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.agents.catalogue.shipped import SHIPPED_AGENTS
from freehold.computer.contract.conventions import WORKSPACE

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "agents.md"
GEMINI = (
    '\n[models.gemini]\nkind = "gemini"\nbase_url = "{model_url}"\nkey = "secret:scripted"\nmodel = "gemini-2.5-pro"\n'
)
STEPS = ("turn", "asks before a command", "asks before a write", "edit", "cancel", "resume after a restart", "undo")
STEP_TIMEOUT = 150.0
START = "<!-- python -m tools.agent_matrix writes this table -->"
END = "<!-- end of the table -->"


@dataclass
class Row:
    """One agent. `found` has a word for each step."""

    name: str
    package: str
    found: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        words = [self.found.get(step, "no") for step in STEPS]
        return f"| `{self.name}` | {self.package} | {' | '.join(words)} |"


async def try_agent(freehold: RunningFreehold, row: Row) -> None:
    """Runs every step. One that fails leaves the word `no`, and its reason on the terminal."""
    session = await _open(freehold, row.name)
    steps: dict[str, Callable[[RunningFreehold, str, str], Awaitable[str]]] = {
        "turn": _take_turn,
        "asks before a command": _ask_command,
        "asks before a write": _ask_write,
        "undo": _undo,
        "resume after a restart": _resume,
        "cancel": _cancel,
    }
    for step, run in steps.items():
        try:
            async with asyncio.timeout(STEP_TIMEOUT):
                row.found[step] = await run(freehold, session, row.name)
        except (AssertionError, TimeoutError) as error:
            row.found[step] = "no"
            print(f"{row.name}: {step}: {type(error).__name__} {str(error)[:600]}", flush=True)
            await freehold.http.post(f"/v1/sessions/{session}/cancel", json={})
            session = await _open(freehold, row.name)
    row.found["edit"] = "yes" if freehold.file(f"{row.name}-written.txt").exists() else "no"
    print(row.line(), flush=True)


async def _open(freehold: RunningFreehold, name: str) -> str:
    """Codex offers its tool for patches only to a model that it knows."""
    return await freehold.open(name, **({"model": "local/gpt-5.5"} if name == "codex" else {}))


async def _take_turn(freehold: RunningFreehold, session: str, name: str) -> str:
    async with freehold.watch(session) as watch:
        ended = await freehold.run_turn(watch, session, "SAY It works")
    assert "It works" in watch.text(), ended["data"]
    return "yes"


async def _ask_command(freehold: RunningFreehold, session: str, name: str) -> str:
    file = f"{name}-commanded.txt"
    return await _ask(freehold, session, f"ESCALATE\nRUN echo made > {file}", file)


async def _ask_write(freehold: RunningFreehold, session: str, name: str) -> str:
    file = f"{name}-written.txt"
    return await _ask(freehold, session, f"ESCALATE\nWRITE {WORKSPACE}/{file} made", file)


async def _ask(freehold: RunningFreehold, session: str, prompt: str, file: str) -> str:
    """Whether it asked while the file was not there yet. It is allowed, and the file must be there then."""
    asked = False
    async with freehold.watch_new(session) as watch:
        turn = (await freehold.prompt(session, prompt))["turn"]
        while True:
            event = await watch.next()
            if event["kind"] == "approval" and event["data"]["state"] == "pending":
                asked = asked or not freehold.file(file).exists()
                await freehold.call("POST", f"/v1/approvals/{event['data']['id']}", answer="once")
            if event["kind"] == "turn.ended" and event["turn"] == turn:
                break
    assert freehold.file(file).exists(), f"{event['data']} {watch.text()[-300:]}"
    return "yes" if asked else "no"


async def _undo(freehold: RunningFreehold, session: str, name: str) -> str:
    """The files go back, and the agent still knows the conversation."""
    file = f"{name}-undone.txt"
    async with freehold.watch_new(session) as watch:
        await freehold.run_turn(watch, session, "SAY my name is Queequeg")
        ended = await freehold.run_turn(watch, session, f"ESCALATE\nRUN echo made > {file}")
        assert freehold.file(file).exists(), ended["data"]
        await freehold.call("POST", "/v1/history/undo", entry=ended["data"]["changes"]["entry"])
        assert not freehold.file(file).exists()
        freehold.model.requests.clear()
        await freehold.run_turn(watch, session, "SAY and yours?")
    assert any("Queequeg" in request.body.decode() for request in freehold.model.requests)
    return "yes"


async def _resume(freehold: RunningFreehold, session: str, name: str) -> str:
    """By which way it knows the conversation after the gateway was killed: its own memory, or the text of it."""
    if name == "gemini":  # started again within the same minute, it writes over its own record
        minute = time.time() // 60
        await until(lambda: time.time() // 60 > minute, deadline=61)
    await freehold.kill_gateway()
    await until(freehold.is_connected)
    freehold.model.requests.clear()
    async with freehold.watch_new(session) as watch:
        await freehold.run_turn(watch, session, "SAY still here?")
    bodies = [request.body.decode() for request in freehold.model.requests]
    assert any("Queequeg" in body for body in bodies)
    return "by text" if any("This conversation began earlier." in body for body in bodies) else "yes"


async def _cancel(freehold: RunningFreehold, session: str, name: str) -> str:
    async with freehold.watch_new(session) as watch:
        await freehold.prompt(session, "SLOW")
        await watch.until_text("tick 00")
        await freehold.call("POST", f"/v1/sessions/{session}/cancel")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "cancelled", ended["data"]
    return "yes"


def read_rows() -> list[Row]:
    """Every agent that Freehold knows, and those of examples/agents.toml."""
    described = tomllib.loads(DESCRIPTIONS.read_text())["agents"]
    rows = [
        Row(agent.name, "" if agent.name == "builtin" else show_packages(agent.package or ""))
        for agent in SHIPPED_AGENTS
    ]
    return rows + [Row(name, show_packages(section["package"])) for name, section in described.items()]


def show_packages(packages: str) -> str:
    return ", ".join(f"`{re.sub('-linux-(x64|arm64)', '', one)}`" for one in packages.split())


def read_table() -> dict[str, str]:
    """The lines that the page has now, by agent."""
    table = PAGE.read_text().partition(START)[2].partition(END)[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| `([\w-]+)` \|.*$", table, re.MULTILINE)}


def write_table(lines: dict[str, str]) -> None:
    text = PAGE.read_text()
    head = f"| agent | packages | {' | '.join(STEPS)} |\n|{'---|' * (len(STEPS) + 2)}\n"
    body = "\n".join(lines[row.name] for row in read_rows() if row.name in lines)
    PAGE.write_text(f"{text.partition(START)[0]}{START}\n\n{head}{body}\n\n{END}{text.partition(END)[2]}")


async def main(names: list[str], *, check: bool) -> int:
    """The exit code."""
    differing = 0
    rows = [row for row in read_rows() if not names or row.name in names]
    manifest = f'[agents]\nmodel = "local"\n{DESCRIPTIONS.read_text()}{GEMINI}'
    for row in rows:
        options = FreeholdOptions(agents=(row.name,), manifest=manifest)
        with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
            async with run_freehold(Path(folder), options) as freehold:
                await try_agent(freehold, row)
        if check:
            differing += read_table().get(row.name) != row.line()
        else:
            write_table(read_table() | {row.name: row.line()})
    return min(differing, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a row differs")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.names, check=given.check)))
