"""Agents: list, install, test and remove them."""

import asyncio
import re
from dataclasses import asdict

from fastapi import Request
from pydantic import BaseModel, Field

from freehold import __version__
from freehold.agents.catalogue.definition import AgentDefinition
from freehold.agents.catalogue.installation import find_problem, install_agent, read_receipt, remove_agent
from freehold.agents.catalogue.registry import choose_provider, find_agent, is_known_to_ask, known_agents, may_use
from freehold.agents.catalogue.remote_registry import MAX_ADDRESS, fetch_registry
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlName
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post
from freehold.manifest import Manifest
from freehold.manifest.agent_modes import may_act_unasked


class AgentInfoBody(BaseModel):
    """An agent. `problem` says why it cannot start.

    `asks` is true when it is known to ask before it acts, by its last session or because Freehold knows it; false when
    it is not; null when only its first session can show it. `mode` is the one of that session, or the one it will be
    put into. `may_act_unasked`: the manifest grants it the exception `unasked-agent`.
    """

    name: str
    title: str
    installed: bool
    version: str | None
    asks: bool | None
    mode: str | None
    may_act_unasked: bool
    models: list[str] = Field(description="The model providers that it may use.")
    model: str | None = Field(description="The provider that it uses when a session names none.")
    default: bool
    problem: str | None


class AgentRemovedBody(BaseModel):
    """An agent whose programs were removed. Its sessions stay."""

    name: str


class ReadRegistryBody(RequestBody):
    """`url` is the address of the index of an ACP registry, with https."""

    url: str = Field(max_length=MAX_ADDRESS)


class RegistryAgentBody(BaseModel):
    """An agent of an ACP registry. `package` is empty when it cannot be added; `why` says why."""

    id: str
    name: str
    version: str
    license: str
    description: str
    package: str
    program: str
    arguments: list[str]
    env: dict[str, str]
    why: str


class AgentTrialBody(BaseModel):
    """The result of a test turn: seconds to each step, memory in bytes, and the capabilities that the agent reports.

    `kind` is the model API that it used. `asks`: it is known to ask before it acts, in the `mode` it was put into.
    """

    name: str
    version: str
    capabilities: dict[str, bool]
    start: float
    session: float
    first_update: float | None
    turn: float
    memory: int
    words: str
    kind: str
    mode: str | None
    asks: bool


def version_of(package: str) -> str:
    """`npm:@scope/name@1.2.3` → `1.2.3`; of an archive, the begin of its hash. The built-in agent has the version of Freehold; without a version it is `latest`."""
    package = package.partition(" ")[0]  # the first of several
    if package.startswith("archive:"):
        return package.rpartition("#sha256=")[2][:12]  # its address may have none
    found = re.search(r"[^:/](?:@|==)([^@=/]+)$", package)
    if found is not None:
        return found[1]
    return __version__ if package == "pypi:freehold-builtin" else "latest"


def _find_provider(agent: AgentDefinition, manifest: Manifest) -> str | None:
    try:
        return choose_provider(agent, manifest)
    except FreeholdError:  # it has none, or one that it may not use
        return None


class AgentRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._sessions = context.sessions

    def _info(self, name: str) -> AgentInfoBody:
        manifest = self._services.manifest
        entry = find_agent(manifest, name)
        receipt = read_receipt(self._services.home, name)
        version = None if receipt is None else version_of(receipt.package)
        seen = self._sessions.dependencies.store.find_last_mode(name)
        return AgentInfoBody(
            name=name,
            title=entry.title,
            installed=entry.package is None or receipt is not None,
            version=version,
            asks=is_known_to_ask(entry) if seen is None else seen[1],
            mode=entry.mode if seen is None else seen[0],
            may_act_unasked=may_act_unasked(manifest, name),
            models=[each for each in manifest.models if may_use(entry, manifest, each)],
            model=_find_provider(entry, manifest),
            default=name == manifest.agents.default,
            problem=find_problem(self._services.home, entry),
        )

    @get("/v1/agents", scope="read")
    async def list_agents(self) -> list[AgentInfoBody]:
        """All known agents, installed or not."""
        await self._sessions.ready.wait()
        return await asyncio.to_thread(lambda: [self._info(name) for name in known_agents(self._services.manifest)])

    @post("/v1/agents/registry", scope="admin")
    async def read_agent_registry(self, body: ReadRegistryBody, request: Request) -> list[RegistryAgentBody]:
        """The agents of an ACP registry. Its index is read through egress, and nothing is added."""
        found = await fetch_registry(self._services.egress, body.url, who=principal_of(request.scope).who)
        return [RegistryAgentBody.model_validate(asdict(one)) for one in found]

    @post("/v1/agents/{name}/install", scope="admin")
    async def install_agent_programs(self, name: UrlName, request: Request) -> AgentInfoBody:
        """Install an agent. Progress is published on the topic `agents`."""
        await self._sessions.ready.wait()
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
    async def remove_agent_programs(self, name: UrlName, request: Request) -> AgentRemovedBody:
        """Remove the programs of an agent."""
        find_agent(self._services.manifest, name)
        await asyncio.to_thread(remove_agent, self._services.home, name)
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "agent.removed", {"agent": name}, who=who)
        return AgentRemovedBody(name=name)

    @post("/v1/agents/{name}/test", scope="admin")
    async def test_agent(self, name: UrlName) -> AgentTrialBody:
        """Run one turn of the agent with a scripted model, in the computer."""
        from freehold.agents.catalogue.trial import try_agent

        manifest = self._services.manifest
        trial = await try_agent(self._services.computer, find_agent(manifest, name), manifest)
        return AgentTrialBody.model_validate(trial.as_json())
