"""What Freehold knows about one agent, and how that becomes a program to start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from freehold.agents.acp.program import AgentLaunch
from freehold.computer.contract.conventions import AGENTS_PATH, BASE_ENVIRONMENT
from freehold.computer.contract.spec import MIB
from freehold.manifest.sections.models import AuthKind, ProviderKind


@dataclass(frozen=True)
class ModelEndpoint:
    """How a program inside reaches its model: an address on loopback and a placeholder in the place of the key."""

    provider: str
    kind: ProviderKind
    base_url: str
    key: str
    model: str | None
    auth: AuthKind = "key"


@dataclass(frozen=True)
class LaunchEnvironment:
    """Variables, and files below /home/agent, for an agent that starts."""

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


Configure = Callable[[ModelEndpoint | None], LaunchEnvironment]
"""Makes an agent use this model; None when there is no model."""


@dataclass(frozen=True)
class AgentDefinition:
    """One agent. It is put into `mode`, in which it asks the owner before risky steps.

    `asks_without_modes`: it asks although it may report no modes. `kinds` are the model APIs that it can use, the best first; empty means that it needs no model from Freehold.
    `expands_variables` means that the agent replaces `${NAME}` in the header of an MCP server by the variable of its
    environment. The token is then not written there, because such an agent passes the header on in a command line.
    `session_meta` is sent with each session request beyond the protocol. `memory` is what it is assumed to use in bytes
    until one was measured. `is_changed`: the manifest changes its program or how that is configured.
    `package`: what is installed, several with spaces between. `folders`: of its own folder, with programs that it needs.
    `skills`: where it looks for skills below its home, beside the places that every agent has.
    """

    name: str
    title: str
    package: str | None
    command: tuple[str, ...]
    asks_without_modes: bool = False
    mode: str | None = None
    kinds: tuple[ProviderKind, ...] = ()
    needs_model: bool = False
    configure: Configure = lambda endpoint: LaunchEnvironment()
    runtime: Literal["node", "python"] | None = None
    model: str | None = None
    expands_variables: bool = False
    session_meta: Mapping[str, object] = field(default_factory=dict)
    memory: int = 256 * MIB
    is_changed: bool = False
    folders: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()

    @property
    def known_name(self) -> str:
        """By which its modes are known. Empty when it is changed: then it is an agent that nobody has tried."""
        return "" if self.is_changed else self.name

    def packages(self, kind: Literal["npm", "pypi", "archive"]) -> list[str]:
        """Those that are installed for this agent from one registry, or as an archive."""
        named = (one.partition(":") for one in (self.package or "").split())
        return [package for source, _, package in named if source == kind]

    def launch(
        self,
        endpoint: ModelEndpoint | None,
        *,
        env: Mapping[str, str | None] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> AgentLaunch:
        """The program to start, with its model and further variables. The placeholder counts as a secret."""
        configured = self.configure(endpoint)
        own = f"{AGENTS_PATH}/{self.name}"
        folders = [*self.folders, "node_modules/.bin", "bin"]
        path = ":".join([*(f"{own}/{one}" for one in folders), f"{AGENTS_PATH}/.node/bin", f"{AGENTS_PATH}/.tools"])
        variables: dict[str, str | None] = {
            "PATH": f"{path}:{BASE_ENVIRONMENT['PATH']}",
            **configured.env,
            **(env or {}),
        }
        if self.packages("pypi") and PurePosixPath(self.command[0]).name.startswith("python"):
            # Commands of packages know their folder. A variable would also reach the programs that the agent runs.
            variables["PYTHONPATH"] = f"{own}/site"
        masked = (endpoint.key, *secrets) if endpoint is not None else secrets
        return AgentLaunch(
            self.name, self.title, self.command, variables, configured.files, self.session_meta, masked, self.skills
        )
