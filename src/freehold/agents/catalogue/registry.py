"""All agents by name: those that Freehold knows, and those of the manifest."""

from dataclasses import replace

from freehold.agents.acp.options import ModePolicy
from freehold.agents.catalogue.definition import AgentDefinition, LaunchEnvironment, ModelEndpoint
from freehold.agents.catalogue.shipped import ALL_KINDS, SHIPPED_AGENTS, configure_any
from freehold.errors import FreeholdError
from freehold.manifest import Manifest
from freehold.manifest.agent_modes import ASKING_MODES, is_asking_mode, may_act_unasked
from freehold.manifest.sections.agents import AgentSection


def known_agents(manifest: Manifest) -> dict[str, AgentDefinition]:
    """Every agent by name, with the changes of the manifest."""
    agents = {agent.name: agent for agent in SHIPPED_AGENTS}
    for name, section in manifest.agents.named.items():
        agents[name] = _apply_section(name, section, agents.get(name))
    return agents


def find_agent(manifest: Manifest, name: str) -> AgentDefinition:
    """Raises `agent.not-found`."""
    agents = known_agents(manifest)
    if name not in agents:
        raise FreeholdError(
            "agent.not-found", f"There is no agent {name!a:.80}", hint=f"The agents are: {', '.join(sorted(agents))}"
        )
    return agents[name]


def mode_policy(manifest: Manifest, agent: AgentDefinition) -> ModePolicy:
    """In which modes this agent may work."""
    unasked = may_act_unasked(manifest, agent.name)
    return ModePolicy(agent.known_name, agent.mode, agent.asks_without_modes, unasked_allowed=unasked)


def is_known_to_ask(agent: AgentDefinition) -> bool | None:
    """Before its first session: whether it asks before it acts. None when only a session can show it."""
    if agent.mode is not None and not is_asking_mode(agent.known_name, agent.mode):
        return False
    return True if agent.asks_without_modes or agent.known_name in ASKING_MODES else None


def choose_provider(agent: AgentDefinition, manifest: Manifest) -> str | None:
    """The provider that the agent uses: the one named for it, or the first with an API that it knows, or None.

    Raises `agent.no-model` when there is none and the agent needs one.
    """
    if agent.model is not None:
        return agent.model
    for name, model in manifest.models.items():
        if model.enabled and model.kind in (agent.kinds or ALL_KINDS):
            return name
    if agent.needs_model:
        kind = agent.kinds[0]
        raise FreeholdError(
            "agent.no-model",
            f"{agent.title} needs a model with the API {' or '.join(agent.kinds)}, and freehold.toml has none",
            hint=f'Example: [models.{kind}] with kind = "{kind}" and key = "secret:{kind}"',
        )
    return None


def _apply_section(name: str, section: AgentSection, shipped: AgentDefinition | None) -> AgentDefinition:
    base = shipped or AgentDefinition(name, name, None, (), kinds=ALL_KINDS, configure=configure_any)

    def configure(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
        configured = base.configure(endpoint)
        return LaunchEnvironment({**configured.env, **section.env}, {**configured.files, **section.files})

    package = section.package or base.package
    runtime = base.runtime
    if shipped is None and package is not None:
        runtime = "node" if package.startswith("npm:") else "python"
    return replace(
        base,
        asks_without_modes=base.asks_without_modes and not section.changes_program,
        is_changed=section.changes_program,
        package=package,
        command=tuple(section.command) or base.command,
        mode=section.mode or base.mode,
        configure=configure,
        runtime=runtime,
        model=section.model or base.model,
    )
