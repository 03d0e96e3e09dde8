"""Agents for the homes of tests. They are installed once a machine and added to a home by hard links."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from freehold.agents.catalogue.installation import RECEIPT, install_agent, read_receipt
from freehold.agents.catalogue.pypi import builtin_version
from freehold.agents.catalogue.registry import find_agent
from freehold.home import Home
from freehold.manifest.model import Manifest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/freehold/builtin"
AGENT_CACHE = ROOT / ".cache" / "agents" / "agents"


def install_closure() -> Path:
    """The agents' folder of a home in which the built-in agent is installed with its packages."""
    lock = hashlib.sha256((CODE / "requirements.lock").read_bytes()).hexdigest()[:16]
    place = ROOT / ".cache" / f"builtin-{lock}"
    home = Home(place, place / "run")
    if read_receipt(home, "builtin") is None:
        install_agent(home, find_agent(Manifest(), "builtin"))
    return home.agents


def link_agents(agents: Path, names: tuple[str, ...]) -> None:
    """Add agents to the folder of a home. The built-in one has the code of the source tree."""
    agents.mkdir(parents=True, exist_ok=True)
    others = [AGENT_CACHE / name for name in names if name != "builtin"]
    if others:
        others.append(AGENT_CACHE / ".node")
    for source in others:
        assert source.exists(), f"{source.name} is not installed: run tools/install-test-agents"
    sources = [install_closure() / "builtin", *others] if "builtin" in names else others
    # cp is several times faster than Python with these tens of thousands of files.
    subprocess.run(["cp", "-al", *map(str, sources), str(agents)], check=True)
    if "builtin" in names:
        _use_source_tree(agents / "builtin")


def _use_source_tree(builtin: Path) -> None:
    code = builtin / "site/freehold/builtin"
    shutil.rmtree(code)
    shutil.copytree(CODE, code, ignore=shutil.ignore_patterns("__pycache__"))
    receipt = json.loads((builtin / RECEIPT).read_text())
    (builtin / RECEIPT).unlink()
    (builtin / RECEIPT).write_text(json.dumps({**receipt, "lock": builtin_version()}))
