"""The agents that Freehold knows: how each is installed, started and connected to a model."""

import json
import platform
import secrets

from freehold.agents.catalogue.definition import AgentDefinition, LaunchEnvironment, ModelEndpoint
from freehold.computer.contract.conventions import AGENT_HOME, AGENTS_PATH
from freehold.computer.contract.spec import MIB
from freehold.manifest.sections.models import ProviderKind

ALL_KINDS: tuple[ProviderKind, ...] = ("anthropic", "openai", "openai-compatible", "gemini")
_NODE = f"{AGENTS_PATH}/.node/bin/node"
_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_OPENAI: tuple[ProviderKind, ...] = ("openai", "openai-compatible")


def configure_any(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
    """For an agent that Freehold does not know: the variables that the clients of each API read."""
    if endpoint is None:
        return LaunchEnvironment()
    own: dict[str, str] = {
        "FREEHOLD_MODEL_KIND": endpoint.kind,
        "FREEHOLD_MODEL_URL": endpoint.base_url,
        "FREEHOLD_MODEL_KEY": endpoint.key,
    }
    if endpoint.model:
        own["FREEHOLD_MODEL"] = endpoint.model
    if endpoint.kind == "anthropic":
        own |= {"ANTHROPIC_BASE_URL": endpoint.base_url, "ANTHROPIC_API_KEY": endpoint.key}
    elif endpoint.kind == "gemini":
        own |= {"GOOGLE_GEMINI_BASE_URL": endpoint.base_url, "GEMINI_API_KEY": endpoint.key}
    else:
        own |= {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": endpoint.key}
    return LaunchEnvironment(own)


def _claude(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
    env = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    if endpoint is not None:
        # With a subscription it sends the placeholder as a bearer token, and the header that the token needs.
        variable = "CLAUDE_CODE_OAUTH_TOKEN" if endpoint.auth == "claude-code" else "ANTHROPIC_API_KEY"
        env |= {"ANTHROPIC_BASE_URL": endpoint.base_url, variable: endpoint.key}
        if endpoint.model:
            env |= {"ANTHROPIC_MODEL": endpoint.model, "ANTHROPIC_SMALL_FAST_MODEL": endpoint.model}
    return LaunchEnvironment(env)


# Claude Code listens on a socket in /tmp and would follow the messages of other sessions as if the owner had sent them.
_CLAUDE_SETTINGS = {"claudeCode": {"options": {"settings": {"crossSessionInbound": "refuse"}}}}


def _opencode(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
    env = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        # OpenCode listens on a loopback port and would show its configuration to every other session.
        "OPENCODE_SERVER_PASSWORD": secrets.token_urlsafe(24),
    }
    config: dict[str, object] = {
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["freehold"],
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
    }
    if endpoint is not None:
        package = "@ai-sdk/anthropic" if endpoint.kind == "anthropic" else "@ai-sdk/openai-compatible"
        url = f"{endpoint.base_url}/v1" if endpoint.kind == "anthropic" else endpoint.base_url
        model = endpoint.model or "default"
        config["provider"] = {
            "freehold": {
                "npm": package,
                "name": endpoint.provider,
                "options": {"baseURL": url, "apiKey": endpoint.key},
                "models": {model: {"name": model}},
            }
        }
        config["model"] = config["small_model"] = f"freehold/{model}"
    return LaunchEnvironment(env | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _codex(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
    """Codex asks only before it runs a command outside of its own sandbox, which cannot be built in this computer.

    So it stays in the mode with a sandbox: every command fails until it asks for permission to run without one.
    """
    lines = [
        'approval_policy = "on-request"',
        'sandbox_mode = "read-only"',
        "check_for_update_on_startup = false",
        # Otherwise every request offers the provider's own search, which Freehold refuses.
        'web_search = "disabled"',
        f"developer_instructions = {json.dumps(_CODEX_RULE)}",
    ]
    tables = ["[analytics]", "enabled = false", "[features]"]
    tables += [f"{name} = false" for name in ("plugins", "apps", "remote_plugin", "plugin_discovery_prefetch")]
    # Otherwise it writes its whole environment into a file that every session can read.
    tables.append("shell_snapshot = false")
    env = {"CODEX_HOME": f"{AGENT_HOME}/.codex"}
    if endpoint is not None:
        lines += ['model_provider = "freehold"']
        if endpoint.model:
            lines.append(f"model = {json.dumps(endpoint.model)}")
        tables += [
            "[model_providers.freehold]",
            f"name = {json.dumps(endpoint.provider)}",
            f"base_url = {json.dumps(endpoint.base_url)}",
            'env_key = "FREEHOLD_MODEL_KEY"',
            'wire_api = "responses"',
        ]
        env["FREEHOLD_MODEL_KEY"] = endpoint.key
    return LaunchEnvironment(env, {".codex/config.toml": "\n".join([*lines, *tables, ""])})


_CODEX_RULE = (
    "Commands cannot start in the sandbox here. Ask for permission to run every command outside of it, "
    "with sandbox_permissions set to require_escalated and a short justification."
)


def _gemini(endpoint: ModelEndpoint | None) -> LaunchEnvironment:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "telemetry": {"enabled": False},
    }
    env: dict[str, str] = {}
    if endpoint is not None:
        env = {"GEMINI_API_KEY": endpoint.key, "GOOGLE_GEMINI_BASE_URL": endpoint.base_url}
        if endpoint.model:
            env["GEMINI_MODEL"] = endpoint.model
    return LaunchEnvironment(env, {".gemini/settings.json": json.dumps(settings)})


SHIPPED_AGENTS = (
    AgentDefinition(
        "builtin",
        "Freehold's own agent",
        "pypi:freehold-builtin",
        ("/usr/bin/python3", "-S", "-m", "freehold.builtin"),  # it needs no packages, and starts faster without them
        mode="ask",
        kinds=ALL_KINDS,
        configure=configure_any,
        runtime="python",
        memory=24 * MIB,
    ),
    AgentDefinition(
        "claude",
        "Claude Code",
        "npm:@agentclientprotocol/claude-agent-acp@0.99.0",
        (_NODE, f"{AGENTS_PATH}/claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"),
        mode="default",
        kinds=("anthropic",),
        needs_model=True,
        configure=_claude,
        runtime="node",
        expands_variables=True,
        session_meta=_CLAUDE_SETTINGS,
        memory=320 * MIB,
    ),
    AgentDefinition(
        "codex",
        "Codex",
        f"npm:@zed-industries/codex-acp-linux-{_MACHINE}@0.16.0",
        (f"{AGENTS_PATH}/codex/node_modules/@zed-industries/codex-acp-linux-{_MACHINE}/bin/codex-acp",),
        mode="read-only",
        kinds=_OPENAI,
        needs_model=True,
        configure=_codex,
        memory=128 * MIB,
    ),
    AgentDefinition(
        "opencode",
        "OpenCode",
        # It runs ripgrep to search and to load skills, and would fetch it from GitHub.
        f"npm:opencode-linux-{_MACHINE}@1.18.33 npm:@vscode/ripgrep-linux-{_MACHINE}@1.18.0",
        (f"{AGENTS_PATH}/opencode/node_modules/opencode-linux-{_MACHINE}/bin/opencode", "acp"),
        asks_without_modes=True,
        kinds=("openai-compatible", "openai", "anthropic"),
        needs_model=True,
        configure=_opencode,
        memory=512 * MIB,
        folders=(f"node_modules/@vscode/ripgrep-linux-{_MACHINE}/bin",),
    ),
    AgentDefinition(
        "gemini",
        "Gemini CLI",
        "npm:@google/gemini-cli@0.61.0",
        (_NODE, f"{AGENTS_PATH}/gemini/node_modules/@google/gemini-cli/bundle/gemini.js", "--acp"),
        mode="default",
        kinds=("gemini",),
        needs_model=True,
        configure=_gemini,
        runtime="node",
        memory=384 * MIB,
    ),
)
