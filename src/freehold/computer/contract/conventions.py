"""Paths, ports and variables that are the same inside every computer, whatever its backend.

Code that runs inside (`freehold.guest`, `freehold.builtin`) and rooms that import no other room (`freehold.manifest`,
`freehold.history`) have their own copies: tests/computer/test_conventions.py compares them with these.
"""

from collections.abc import Mapping

GUEST_PATH = "/opt/freehold/guest.pyz"
GUEST_PYTHON = "/usr/bin/python3"
AGENTS_PATH = "/opt/agents"
SKILLS_PATH = "/opt/agent-skills"
SKILLS_IN_USE = f"{SKILLS_PATH}/current"
"""A link for each skill that agents are shown, by its name."""
SKILL_PLACES = (".agents/skills", ".claude/skills")
"""Where agents look for skills in their home: Claude Code in its own folder, all others in the one of the open format."""
PACKAGES_PATH = "/opt/packages"
"""Each folder below is one package with what it needs, prepared for isolates."""
WORKSPACE = "/workspace"
AGENT_HOME = "/home/agent"
AGENT_UID = 1000
AGENT_GID = 1000

OWNER_COMMANDS = "owner commands"
"""The group (`apart`) of commands that the owner runs in a session. The kill switch ends what they leave behind."""

HOST_COMMANDS = "host commands"
"""The group (`apart`) of programs that the host runs for itself. The kill switch ends what they leave behind."""

LOOPBACK = "127.0.0.1"
EGRESS_PORT = 3128
MODEL_PORT = 3129
HOST_TOOLS_PORT = 3130
RESERVED_PORTS = (EGRESS_PORT, MODEL_PORT, HOST_TOOLS_PORT)
"""Ports inside that only the host can answer. The guest listens on them from its start to its end."""
PROXY_URL = f"http://{LOOPBACK}:{EGRESS_PORT}"
_NO_PROXY = "localhost,127.0.0.1,::1"

BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": f"{AGENT_HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": AGENT_HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "xterm-256color",
    "HTTP_PROXY": PROXY_URL,
    "HTTPS_PROXY": PROXY_URL,
    "ALL_PROXY": PROXY_URL,
    "NO_PROXY": _NO_PROXY,
    "http_proxy": PROXY_URL,
    "https_proxy": PROXY_URL,
    "all_proxy": PROXY_URL,
    "no_proxy": _NO_PROXY,
}
"""The environment of every process inside, before the spec and the command add their own variables."""
