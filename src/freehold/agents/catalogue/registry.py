"""All agents by name: those that Freehold knows, and those of the manifest."""

import re
from dataclasses import replace

from freehold.agents.acp.options import ModePolicy
from freehold.agents.catalogue.definition import AgentDefinition, LaunchEnvironment, ModelEndpoint
from freehold.agents.catalogue.shipped import ALL_KINDS, SHIPPED_AGENTS, configure_any
from freehold.egress.models.provider_setup import TOUR_PROVIDER
from freehold.errors import FreeholdError
from freehold.manifest import Manifest
from freehold.manifest.agent_modes import ASKING_MODES, is_asking_mode, may_act_unasked
from freehold.manifest.sections.agents import AgentSection
from freehold.manifest.sections.models import SUBSCRIPTIONS

_MODEL = re.compile(r"\{model\.(url|key|name|kind)\}")


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
        check_provider_fits(agent, manifest, agent.model)
        return agent.model
    fitting = [name for name in manifest.models if may_use(agent, manifest, name)]
    if fitting:
        return manifest.agents.model if manifest.agents.model in fitting else fitting[0]
    if agent.needs_model:
        known = "openai" if agent.kinds[0] == "openai-compatible" else agent.kinds[0]
        raise FreeholdError(
            "agent.no-model",
            f"{agent.title} needs a model with the API {' or '.join(agent.kinds)}, and none is connected",
            hint=f"Connect one in Settings, Models, or with: freehold models add {known}",
        )
    return None


def name_model(text: str, endpoint: ModelEndpoint | None) -> str:
    """A text of the manifest with the model in it: `{model.url}`, `{model.key}`, `{model.name}` and `{model.kind}`.

    The key is the placeholder. Without a model they are empty.
    """
    values = {
        "url": "" if endpoint is None else endpoint.base_url,
        "key": "" if endpoint is None else endpoint.key,
        "name": "" if endpoint is None else endpoint.model or "",
        "kind": "" if endpoint is None else endpoint.kind,
    }
    return _MODEL.sub(lambda found: values[found[1]], text)


def may_use(agent: AgentDefinition, manifest: Manifest, provider: str) -> bool:
    """Whether the agent may use this provider. A subscription is for its vendor's own program, unchanged."""
    model = manifest.models.get(provider)
    return model is not None and model.fits(agent.known_name, agent.kinds or ALL_KINDS)


def check_provider_fits(agent: AgentDefinition, manifest: Manifest, provider: str) -> None:
    """Raises `agent.subscription.permission` when the provider is a subscription that belongs to another agent."""
    terms = SUBSCRIPTIONS.get(manifest.models[provider].auth) if provider in manifest.models else None
    if terms is not None and terms.agent != agent.known_name:
        raise FreeholdError(
            "agent.subscription.permission",
            f"{provider} is a subscription that only the agent {terms.agent} may use, as it is shipped",
            hint="Choose another model for this agent, or that agent for this model",
        )


def split_choice(chosen: str | None, manifest: Manifest) -> tuple[str | None, str | None]:
    """A session's choice as provider and model: `local`, `local/qwen3-coder`, or a model of the agent's own provider."""
    if chosen is None or chosen in manifest.models or chosen == TOUR_PROVIDER:
        return chosen, None
    provider, mark, model = chosen.partition("/")
    return (provider, model) if mark and model and provider in manifest.models else (None, chosen)


def _apply_section(name: str, section: AgentSection, shipped: AgentDefinition | None) -> AgentDefinition:
    base = shipped or AgentDefinition(name, name, None, (), kinds=ALL_KINDS, configure=configure_any)

    def configure(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
        configured = base.configure(endpoint)
        env = {name: name_model(text, endpoint) for name, text in section.env.items()}
        files = {path: name_model(text, endpoint) for path, text in section.files.items()}
        return LaunchEnvironment({**configured.env, **env}, {**configured.files, **files})

    package = section.package or base.package
    runtime = base.runtime
    if shipped is None and package is not None:
        kinds = {one.partition(":")[0] for one in package.split()}
        runtime = "node" if "npm" in kinds else "python" if "pypi" in kinds else None
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
        skills=tuple(section.skills) or base.skills,
    )
