"""Under which heading `freehold --help` lists the commands of this package. Features name the heading of their own."""

from freehold.features import CommandTopic

TOPICS = {
    CommandTopic.DAILY: ("up", "down", "open", "try", "chat", "status", "stop"),
    CommandTopic.FILES: ("log", "diff", "show", "undo", "redo", "restore", "revert", "history", "run", "map", "preview"),
    CommandTopic.AGENTS: ("agents", "models", "sessions", "runs", "usage", "secret", "acp"),
    CommandTopic.KNOWLEDGE: ("beads", "memory", "pods", "events", "slots"),
    CommandTopic.NETWORK: ("egress", "login", "token", "sign-ins"),
    CommandTopic.HOUSE: (
        "check", "completion", "doctor", "init", "logs", "restart", "retention", "starter", "timeline", "uninstall",
        "upgrade", "version",
    ),
}  # fmt: skip
"""In the order in which a new owner meets them."""
