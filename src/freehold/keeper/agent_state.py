"""Files in the computer's home that agents write for themselves, such as their own record of conversations.

History ignores them, for two reasons. A turn without changes to the owner's files must not become an entry. And an agent
cannot continue a conversation when its own record is restored to an earlier state; a conversation is rewound by its
session. History does record what people write for an agent, or what an attacker could place there: instructions,
commands, hooks, skills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.manifest import Manifest  # takes 12 MB, and the keeper only reads what it made

_WRITTEN = {
    ".claude": (
        "CLAUDE.md settings.json settings.local.json keybindings.json "
        "agents commands hooks output-styles plugins rules skills workflows"
    ),
    ".codex": "AGENTS.md AGENTS.override.md prompts rules skills",
    ".gemini": "GEMINI.md agents commands extensions hooks policies skills",
}
"""Folders of which history records only these names."""

_FOLDERS = (
    ".freehold/sessions",
    ".claude/plugins/store",
    ".codex/skills/.system",
    ".local/share/opencode",
    ".local/state/opencode",
    ".cache/opencode",
    ".cache/claude-cli-nodejs",
)
_FILES = (".claude.json*", ".config/opencode/.gitignore")

IGNORED_PATTERNS: tuple[str, ...] = (
    *(f"home/{folder}/*" for folder in _WRITTEN),
    *(f"!home/{folder}/{name}" for folder, names in _WRITTEN.items() for name in names.split()),
    *(f"home/{folder}/" for folder in _FOLDERS),
    *(f"home/{name}" for name in _FILES),
)
"""They come before the owner's patterns, which can undo one: `!home/.claude/*` in history.ignore."""

INITIAL_FOLDERS: tuple[str, ...] = (
    ".cache",
    ".claude",
    ".claude/plugins",
    ".codex",
    ".codex/skills",
    ".config",
    ".config/opencode",
    ".freehold",
    ".gemini",
    ".local",
    ".local/share",
    ".local/state",
)
"""The folders around them, parents first. A new home has them from the start, so that the first start of an agent changes nothing that history records."""

STATE_FOLDERS: tuple[str, ...] = (
    *_WRITTEN,
    ".freehold/sessions",
    ".local/share/opencode",
    ".local/state/opencode",
)
"""Where the ignored files are that a backup needs, so that agents can continue their conversations. Caches are not among them."""

STATE_FILES = ".claude.json"
"""How the name of a file of this kind begins, in the home itself."""


def list_memory_folders(manifest: Manifest) -> tuple[str, ...]:
    """Where agents that Freehold does not ship keep their conversations, as their descriptions say."""
    return tuple(dict.fromkeys(folder for agent in manifest.agents.named.values() for folder in agent.memory))


def list_memory_patterns(manifest: Manifest) -> tuple[str, ...]:
    """The same as patterns of what history ignores."""
    return tuple(f"home/{folder}/" for folder in list_memory_folders(manifest))
