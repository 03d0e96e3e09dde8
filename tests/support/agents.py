"""Agents for the homes of tests. They are installed once a machine and added to a home by hard links."""

import subprocess
from pathlib import Path

from freehold.agents.catalogue.installation import install_agent, read_receipt
from freehold.agents.catalogue.pypi import builtin_version
from freehold.agents.catalogue.registry import find_agent
from freehold.home import Home
from freehold.manifest.model import Manifest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/freehold/builtin"
AGENT_CACHE = ROOT / ".cache" / "agents" / "agents"
DESCRIPTIONS = ROOT / "examples" / "agents.toml"
"""Agents that Freehold does not ship, described."""


def install_closure() -> Path:
    """The agents' folder of a home in which the built-in agent of the source tree is installed."""
    place = ROOT / ".cache" / f"builtin-{builtin_version().removeprefix('sha256:')[:16]}"
    home = Home(place, place / "run")
    if read_receipt(home, "builtin") is None:
        install_agent(home, find_agent(Manifest(), "builtin"))
    return home.agents


def link_agents(agents: Path, names: tuple[str, ...]) -> None:
    """Add agents to the folder of a home. The built-in one has the code of the source tree."""
    agents.mkdir(parents=True, exist_ok=True)
    others = [AGENT_CACHE / name for name in names if name != "builtin"]
    if others:
        others += [AGENT_CACHE / shared for shared in (".node", ".python") if (AGENT_CACHE / shared).exists()]
    for source in others:
        assert source.exists(), f"{source.name} is not installed: run tools/install-test-agents"
    sources = [install_closure() / "builtin", *others] if "builtin" in names else others
    # cp is several times faster than Python with these tens of thousands of files.
    subprocess.run(["cp", "-al", *map(str, sources), str(agents)], check=True)
