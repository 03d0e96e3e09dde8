"""What agents keep for themselves in the computer's home: their own memory of conversations, and no work of the owner's.

History leaves it alone, for two reasons: a turn that only talked is no change to take back, and an agent whose memory is
put back to an earlier state under its feet can go on with nothing. What was said is taken back by rewinding the chat.
What a person writes for an agent, or somebody could plant there (instructions, commands, hooks, skills), is kept.
"""

_WRITTEN = {
    ".claude": (
        "CLAUDE.md settings.json settings.local.json keybindings.json "
        "agents commands hooks output-styles plugins rules skills workflows"
    ),
    ".codex": "AGENTS.md AGENTS.override.md prompts rules skills",
    ".gemini": "GEMINI.md agents commands extensions hooks policies skills",
}
"""Folders of which only these names are kept."""

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

IGNORED: tuple[str, ...] = (
    *(f"home/{folder}/*" for folder in _WRITTEN),
    *(f"!home/{folder}/{name}" for folder, names in _WRITTEN.items() for name in names.split()),
    *(f"home/{folder}/" for folder in _FOLDERS),
    *(f"home/{name}" for name in _FILES),
)
"""Patterns before the owner's own: `!home/.claude/*` in history.ignore takes one back."""

MADE: tuple[str, ...] = (
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
"""Folders around it, in order. A new home has them from the start, so that an agent's first start changes nothing that is kept."""
