"""The built-in agent as it is installed: its closure is fetched once a machine, its own code is the one beside us."""

import hashlib
import json
import os
import shutil
from pathlib import Path

from freehold.agents.installing import RECEIPT, _our_version, install_agent, installed
from freehold.agents.registry import find_agent
from freehold.home import Home
from freehold.manifest.model import Manifest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/freehold/builtin"


def install_closure() -> Path:
    """The agents' folder of a home in which the agent is installed."""
    lock = hashlib.sha256((CODE / "requirements.lock").read_bytes()).hexdigest()[:16]
    place = ROOT / ".cache" / f"builtin-{lock}"
    home = Home(place, place / "run")
    if installed(home, "builtin") is None:
        install_agent(home, find_agent(Manifest(), "builtin"))
    return home.agents


def link_builtin(agents: Path) -> None:
    """Into another home's folder of agents, by hard links, with the code as it is now."""
    agents.mkdir(parents=True, exist_ok=True)
    place = agents / "builtin"
    shutil.copytree(install_closure() / "builtin", place, symlinks=True, copy_function=os.link)
    code = place / "site/freehold/builtin"
    shutil.rmtree(code)
    shutil.copytree(CODE, code, ignore=shutil.ignore_patterns("__pycache__"))
    receipt = json.loads((place / RECEIPT).read_text())
    (place / RECEIPT).unlink()
    (place / RECEIPT).write_text(json.dumps({**receipt, "lock": _our_version()}))
