"""Which agents can work here, and bringing, trying and removing them."""

import asyncio
import re
from typing import Annotated

from fastapi import FastAPI, Path, Request
from pydantic import BaseModel

from freehold import __version__
from freehold.agents.installing import install_agent, installed, problem_with, remove_agent
from freehold.agents.registry import find_agent, known_agents
from freehold.agents.room import Room
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs

Name = Annotated[str, Path(max_length=100)]


class AgentRow(BaseModel):
    """An agent. `asks` is false for one that acts without asking; `problem` says why it cannot start."""

    name: str
    title: str
    installed: bool
    version: str | None
    asks: bool
    default: bool
    problem: str | None


class AgentRemoved(BaseModel):
    """An agent whose programs are gone; its sessions stay."""

    name: str


class AgentTrial(BaseModel):
    """What an agent did when it was tried: seconds to each step, its memory in bytes, and what it says it can do."""

    name: str
    version: str
    capabilities: dict[str, bool]
    start: float
    session: float
    first_update: float | None
    turn: float
    memory: int
    words: str


def version_of(package: str) -> str:
    """`npm:@scope/name@1.2.3` → `1.2.3`. Our own agent is as old as this Freehold; one that names none is the newest."""
    found = re.search(r"[^:/](?:@|==)([^@=/]+)$", package)
    if found is not None:
        return found[1]
    return __version__ if package == "pypi:freehold-builtin" else "latest"


def add_agents(app: FastAPI, house: House, room: Room) -> None:
    def row(name: str) -> AgentRow:
        entry = find_agent(house.manifest, name)
        receipt = installed(house.home, name)
        version = None if receipt is None else version_of(receipt.package)
        return AgentRow(
            name=name,
            title=entry.title,
            installed=entry.package is None or receipt is not None,
            version=version,
            asks=entry.asks,
            default=name == house.manifest.agents.default,
            problem=problem_with(house.home, entry),
        )

    @app.get("/v1/agents")
    @needs("read")
    async def list_agents() -> list[AgentRow]:
        """Every agent that is known, installed or not."""
        return await asyncio.to_thread(lambda: [row(name) for name in known_agents(house.manifest)])

    @app.post("/v1/agents/{name}/install")
    @needs("admin")
    async def add_agent(name: Name, request: Request) -> AgentRow:
        """Install it, once; how far it is comes on the topic `agents`."""
        entry = find_agent(house.manifest, name)
        loop = asyncio.get_running_loop()

        def progress(what: str, done: int, total: int) -> None:
            told = {"agent": name, "doing": what, "done": done, "total": total}
            loop.call_soon_threadsafe(room.ground.watchers.installing, told)

        receipt = await asyncio.to_thread(install_agent, house.home, entry, progress)
        who = principal_of(request.scope).who
        told = {"agent": name, "package": receipt.package, "lock": receipt.lock}
        await asyncio.to_thread(house.timeline.append, "agent.installed", told, who=who)
        room.ground.watchers.installing({"agent": name, "doing": "installed", "done": 1, "total": 1})
        return row(name)

    @app.delete("/v1/agents/{name}")
    @needs("admin")
    async def drop_agent(name: Name, request: Request) -> AgentRemoved:
        """Remove its programs."""
        find_agent(house.manifest, name)
        await asyncio.to_thread(remove_agent, house.home, name)
        who = principal_of(request.scope).who
        await asyncio.to_thread(house.timeline.append, "agent.removed", {"agent": name}, who=who)
        return AgentRemoved(name=name)

    @app.post("/v1/agents/{name}/test")
    @needs("admin")
    async def try_agent_out(name: Name) -> AgentTrial:
        """One turn of it with a scripted model, in the computer."""
        from freehold.agents.trial import try_agent

        trial = await try_agent(house.sealed.computer, find_agent(house.manifest, name))
        return AgentTrial.model_validate(trial.as_json())
