"""What the first project stands on: Vite and React, as locked, read-only inside and out of the agent's reach."""

import importlib.resources

from freehold.agents.installing import Progress, Receipt, install_kit
from freehold.home import Home

NAME = ".starter"
INSIDE = f"/opt/agents/{NAME}"
COMMAND = (
    "/opt/agents/.node/bin/node",
    f"{INSIDE}/node_modules/vite/bin/vite.js",
    # The usual loader writes beside the packages, where nobody inside can write.
    "--configLoader",
    "native",
)
PORT = 5173


def fetch_kit(home: Home, progress: Progress = lambda what, done, total: None) -> Receipt:
    """Blocks, and downloads what is missing. Idempotent; whole or not at all; runs nothing of it here."""
    lock = (importlib.resources.files("freehold.starter") / "kit.json").read_bytes()
    return install_kit(home, NAME, lock, progress)
