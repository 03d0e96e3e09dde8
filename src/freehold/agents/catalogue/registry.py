"""Which agents there are: those we ship a line for, and those the manifest describes by itself."""

import json
import platform
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from freehold.errors import FreeholdError
from freehold.manifest import Manifest
from freehold.manifest.sections.minds import Agent as Described
from freehold.manifest.sections.minds import Kind

INSIDE = "/opt/agents"
"""Where the agents' folder is inside the computer, read-only."""

NODE = f"{INSIDE}/.node/bin/node"
_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_OPENAI: tuple[Kind, ...] = ("openai", "openai-compatible")
_EVERY: tuple[Kind, ...] = ("anthropic", "openai", "openai-compatible", "gemini")


@dataclass(frozen=True)
class Access:
    """How a program inside reaches its model: an address on loopback and a placeholder that is no key."""

    provider: str
    kind: Kind
    base_url: str
    key: str
    model: str | None


@dataclass(frozen=True)
class Surroundings:
    """What an agent finds when it starts: variables, and files below /home/agent."""

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


Point = Callable[[Access | None], Surroundings]
"""Points an agent at its model; None when there is none."""


@dataclass(frozen=True)
class Entry:
    """One agent. `asks` says whether it leaves risky steps to the owner when it is in `mode`.

    `kinds` are the APIs it can be pointed at, the best first; empty means that it brings or needs no model of ours.
    `fills_in` tells that it puts variables of its environment where `${NAME}` stands in an MCP server's header: then the
    token itself is not given there, since such an agent hands what it is given on by a command line. `meta` is what it
    is told with each session beyond the protocol.
    """

    name: str
    title: str
    package: str | None
    command: tuple[str, ...]
    asks: bool = True
    mode: str | None = None
    kinds: tuple[Kind, ...] = ()
    needs_model: bool = False
    point: Point = lambda access: Surroundings()
    runtime: Literal["node", "python"] | None = None
    model: str | None = None
    fills_in: bool = False
    meta: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> tuple[str, str] | None:
        """("npm" | "pypi", what that installs), or None when nothing is installed."""
        if self.package is None:
            return None
        kind, _, what = self.package.partition(":")
        return kind, what

    @property
    def path(self) -> str:
        """The folders in which its own programs are found, before all others."""
        own = f"{INSIDE}/{self.name}"
        return f"{own}/node_modules/.bin:{own}/bin:{INSIDE}/.node/bin:{INSIDE}/.tools"


def known_agents(manifest: Manifest) -> dict[str, Entry]:
    """Every agent by name, as the manifest changes it."""
    entries = {entry.name: entry for entry in _SHIPPED}
    for name, described in manifest.agents.named.items():
        entries[name] = _described(name, described, entries.get(name))
    return entries


def find_agent(manifest: Manifest, name: str) -> Entry:
    entries = known_agents(manifest)
    if name not in entries:
        raise FreeholdError(
            "agent.not-found", f"There is no agent {name!a:.80}", hint=f"The agents are: {', '.join(sorted(entries))}"
        )
    return entries[name]


def choose_model(entry: Entry, manifest: Manifest) -> str | None:
    """The provider it uses: the one named for it, else the first that speaks an API it knows. None when there is none.

    Raises `agent.no-model` for an agent that cannot work without.
    """
    if entry.model is not None:
        return entry.model
    for name, model in manifest.models.items():
        if model.enabled and model.kind in (entry.kinds or _EVERY):
            return name
    if entry.needs_model:
        raise FreeholdError(
            "agent.no-model",
            f"{entry.title} needs a model that speaks {' or '.join(entry.kinds)}, and freehold.toml has none",
            hint=f'Example: [models.{entry.kinds[0]}] with kind = "{entry.kinds[0]}" and key = "secret:{entry.kinds[0]}"',
        )
    return None


def _described(name: str, described: Described, shipped: Entry | None) -> Entry:
    base = shipped or Entry(name, name, None, (), asks=True, kinds=_EVERY, point=_general)

    def point(access: Access | None) -> Surroundings:
        ours = base.point(access)
        return Surroundings({**ours.env, **described.env}, {**ours.files, **described.files})

    package = described.package or base.package
    runtime = base.runtime
    if shipped is None and package is not None:
        runtime = "node" if package.startswith("npm:") else "python"
    return Entry(
        name,
        base.title,
        package,
        tuple(described.command) or base.command,
        asks=base.asks,
        mode=described.mode or base.mode,
        kinds=base.kinds,
        needs_model=base.needs_model,
        point=point,
        runtime=runtime,
        model=described.model or base.model,
        fills_in=base.fills_in,
        meta=base.meta,
    )


def _general(access: Access | None) -> Surroundings:
    """For an agent we know nothing of: what the clients of each API look for."""
    if access is None:
        return Surroundings()
    own: dict[str, str] = {
        "FREEHOLD_MODEL_KIND": access.kind,
        "FREEHOLD_MODEL_URL": access.base_url,
        "FREEHOLD_MODEL_KEY": access.key,
    }
    if access.model:
        own["FREEHOLD_MODEL"] = access.model
    if access.kind == "anthropic":
        own |= {"ANTHROPIC_BASE_URL": access.base_url, "ANTHROPIC_API_KEY": access.key}
    elif access.kind == "gemini":
        own |= {"GOOGLE_GEMINI_BASE_URL": access.base_url, "GEMINI_API_KEY": access.key}
    else:
        own |= {"OPENAI_BASE_URL": access.base_url, "OPENAI_API_KEY": access.key}
    return Surroundings(own)


def _claude(access: Access | None) -> Surroundings:
    env = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    if access is not None:
        env |= {"ANTHROPIC_BASE_URL": access.base_url, "ANTHROPIC_API_KEY": access.key}
        if access.model:
            env |= {"ANTHROPIC_MODEL": access.model, "ANTHROPIC_SMALL_FAST_MODEL": access.model}
    return Surroundings(env)


# It listens on a socket in /tmp for other sessions, and would work on what they send as if the owner had asked for it.
_CLAUDE_SETTINGS = {"claudeCode": {"options": {"settings": {"crossSessionInbound": "refuse"}}}}


def _opencode(access: Access | None) -> Surroundings:
    env = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        # It serves itself on a loopback port, configuration included, to every session that asks.
        "OPENCODE_SERVER_PASSWORD": secrets.token_urlsafe(24),
    }
    config: dict[str, object] = {
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["freehold"],
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
    }
    if access is not None:
        package = "@ai-sdk/anthropic" if access.kind == "anthropic" else "@ai-sdk/openai-compatible"
        url = f"{access.base_url}/v1" if access.kind == "anthropic" else access.base_url
        model = access.model or "default"
        config["provider"] = {
            "freehold": {
                "npm": package,
                "name": access.provider,
                "options": {"baseURL": url, "apiKey": access.key},
                "models": {model: {"name": model}},
            }
        }
        config["model"] = config["small_model"] = f"freehold/{model}"
    return Surroundings(env | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _codex(access: Access | None) -> Surroundings:
    """It asks only before it leaves the sandbox of its own, which our walls do not let it build.

    So it is kept in the mode that would have one: every command fails until it asks for leave to run without.
    """
    lines = [
        'approval_policy = "on-request"',
        'sandbox_mode = "read-only"',
        "check_for_update_on_startup = false",
        f"developer_instructions = {json.dumps(_CODEX_RULE)}",
    ]
    tables = ["[analytics]", "enabled = false", "[features]"]
    tables += [f"{name} = false" for name in ("plugins", "apps", "remote_plugin", "plugin_discovery_prefetch")]
    # It would write its whole environment into a file that every session can read.
    tables.append("shell_snapshot = false")
    env = {"CODEX_HOME": "/home/agent/.codex"}
    if access is not None:
        lines += ['model_provider = "freehold"']
        if access.model:
            lines.append(f"model = {json.dumps(access.model)}")
        tables += [
            "[model_providers.freehold]",
            f"name = {json.dumps(access.provider)}",
            f"base_url = {json.dumps(access.base_url)}",
            'env_key = "FREEHOLD_MODEL_KEY"',
            'wire_api = "responses"',
        ]
        env["FREEHOLD_MODEL_KEY"] = access.key
    return Surroundings(env, {".codex/config.toml": "\n".join([*lines, *tables, ""])})


_CODEX_RULE = (
    "Commands cannot start in the sandbox here. For every command that you run, ask for leave to run it outside, "
    "with sandbox_permissions set to require_escalated and a short justification."
)


def _gemini(access: Access | None) -> Surroundings:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "telemetry": {"enabled": False},
    }
    env: dict[str, str] = {}
    if access is not None:
        env = {"GEMINI_API_KEY": access.key, "GOOGLE_GEMINI_BASE_URL": access.base_url}
        if access.model:
            env["GEMINI_MODEL"] = access.model
    return Surroundings(env, {".gemini/settings.json": json.dumps(settings)})


_SHIPPED = (
    Entry(
        "builtin",
        "Freehold's own agent",
        "pypi:freehold-builtin",
        ("/usr/bin/python3", "-m", "freehold.builtin"),
        mode="ask",
        kinds=_EVERY,
        point=_general,
        runtime="python",
    ),
    Entry(
        "claude",
        "Claude Code",
        "npm:@agentclientprotocol/claude-agent-acp@0.99.0",
        (NODE, f"{INSIDE}/claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"),
        mode="default",
        kinds=("anthropic",),
        needs_model=True,
        point=_claude,
        runtime="node",
        fills_in=True,
        meta=_CLAUDE_SETTINGS,
    ),
    Entry(
        "codex",
        "Codex",
        f"npm:@zed-industries/codex-acp-linux-{_MACHINE}@0.16.0",
        (f"{INSIDE}/codex/node_modules/@zed-industries/codex-acp-linux-{_MACHINE}/bin/codex-acp",),
        mode="read-only",
        kinds=_OPENAI,
        needs_model=True,
        point=_codex,
    ),
    Entry(
        "opencode",
        "OpenCode",
        f"npm:opencode-linux-{_MACHINE}@1.18.33",
        (f"{INSIDE}/opencode/node_modules/opencode-linux-{_MACHINE}/bin/opencode", "acp"),
        kinds=("openai-compatible", "openai", "anthropic"),
        needs_model=True,
        point=_opencode,
    ),
    Entry(
        "gemini",
        "Gemini CLI",
        "npm:@google/gemini-cli@0.61.0",
        (NODE, f"{INSIDE}/gemini/node_modules/@google/gemini-cli/bundle/gemini.js", "--acp"),
        mode="default",
        kinds=("gemini",),
        needs_model=True,
        point=_gemini,
        runtime="node",
    ),
)
