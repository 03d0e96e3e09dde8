"""Agents: list, install, test and remove them."""

import asyncio
import re
from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel

from freehold import __version__
from freehold.agents.catalogue.installation import find_problem, install_agent, read_receipt, remove_agent
from freehold.agents.catalogue.registry import find_agent, known_agents
from freehold.gateway.context import RouteContext
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post

Name = Annotated[str, Path(max_length=100)]


class AgentInfoBody(BaseModel):
    """An agent. `asks` is false when it acts without asking for permission. `problem` says why it cannot start."""

    name: str
    title: str
    installed: bool
    version: str | None
    asks: bool
    default: bool
    problem: str | None


class AgentRemovedBody(BaseModel):
    """An agent whose programs were removed. Its sessions stay."""

    name: str


class AgentTrialBody(BaseModel):
    """The result of a test turn: seconds to each step, memory in bytes, and the capabilities that the agent reports."""

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
    """`npm:@scope/name@1.2.3` → `1.2.3`. The built-in agent has the version of Freehold; without a version it is `latest`."""
    found = re.search(r"[^:/](?:@|==)([^@=/]+)$", package)
    if found is not None:
        return found[1]
    return __version__ if package == "pypi:freehold-builtin" else "latest"


class AgentRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._sessions = context.sessions

    def _info(self, name: str) -> AgentInfoBody:
        entry = find_agent(self._services.manifest, name)
        receipt = read_receipt(self._services.home, name)
        version = None if receipt is None else version_of(receipt.package)
        return AgentInfoBody(
            name=name,
            title=entry.title,
            installed=entry.package is None or receipt is not None,
            version=version,
            asks=entry.asks,
            default=name == self._services.manifest.agents.default,
            problem=find_problem(self._services.home, entry),
        )

    @get("/v1/agents", scope="read")
    async def list_agents(self) -> list[AgentInfoBody]:
        """All known agents, installed or not."""
        return await asyncio.to_thread(lambda: [self._info(name) for name in known_agents(self._services.manifest)])

    @post("/v1/agents/{name}/install", scope="admin")
    async def install_agent_programs(self, name: Name, request: Request) -> AgentInfoBody:
        """Install an agent. Progress is published on the topic `agents`."""
        entry = find_agent(self._services.manifest, name)
        loop = asyncio.get_running_loop()

        def progress(what: str, done: int, total: int) -> None:
            step = {"agent": name, "doing": what, "done": done, "total": total}
            loop.call_soon_threadsafe(self._sessions.dependencies.watchers.publish_installation, step)

        receipt = await asyncio.to_thread(install_agent, self._services.home, entry, progress)
        who = principal_of(request.scope).who
        data = {"agent": name, "package": receipt.package, "lock": receipt.lock}
        await asyncio.to_thread(self._services.timeline.append, "agent.installed", data, who=who)
        self._sessions.dependencies.watchers.publish_installation(
            {"agent": name, "doing": "installed", "done": 1, "total": 1}
        )
        return self._info(name)

    @delete("/v1/agents/{name}", scope="admin")
    async def remove_agent_programs(self, name: Name, request: Request) -> AgentRemovedBody:
        """Remove the programs of an agent."""
        find_agent(self._services.manifest, name)
        await asyncio.to_thread(remove_agent, self._services.home, name)
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "agent.removed", {"agent": name}, who=who)
        return AgentRemovedBody(name=name)

    @post("/v1/agents/{name}/test", scope="admin")
    async def test_agent(self, name: Name) -> AgentTrialBody:
        """Run one turn of the agent with a scripted model, in the computer."""
        from freehold.agents.catalogue.trial import try_agent

        trial = await try_agent(self._services.computer, find_agent(self._services.manifest, name))
        return AgentTrialBody.model_validate(trial.as_json())
