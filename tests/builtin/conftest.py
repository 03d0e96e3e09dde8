"""The built-in agent as it is installed: its closure is fetched once a machine, its own code is the one beside us."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from freehold.agents.installing import install_agent, installed
from freehold.agents.registry import find_agent
from freehold.computer import Computer
from freehold.computer.spec import Mount
from freehold.home import Home
from freehold.manifest.model import Manifest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/freehold/builtin"


@pytest.fixture(scope="session")
def closure() -> Path:
    """The agents' folder of a home in which the agent is installed."""
    lock = hashlib.sha256((CODE / "requirements.lock").read_bytes()).hexdigest()[:16]
    place = ROOT / ".cache" / f"builtin-{lock}"
    home = Home(place, place / "run")
    if installed(home, "builtin") is None:
        install_agent(home, find_agent(Manifest(), "builtin"))
    return home.agents


@pytest.fixture
async def computer(closure: Path) -> AsyncIterator[Computer]:
    mounts = [Mount(closure, "/opt/agents"), Mount(CODE, "/opt/agents/builtin/site/freehold/builtin")]
    async with Computer.start(mounts=mounts) as started:
        yield started
