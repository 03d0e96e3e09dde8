"""The packages of the first project: Vite and React, pinned by a lock, read-only inside the computer."""

import importlib.resources

from freehold.agents.catalogue.install_command import Progress
from freehold.agents.catalogue.installation import InstallReceipt, install_npm_packages
from freehold.computer.contract.conventions import AGENTS_PATH
from freehold.home import Home

NAME = ".starter"
INSIDE = f"{AGENTS_PATH}/{NAME}"
COMMAND = (
    f"{AGENTS_PATH}/.node/bin/node",
    f"{INSIDE}/node_modules/vite/bin/vite.js",
    # The default loader writes beside the packages, which are read-only inside.
    "--configLoader",
    "native",
)
PORT = 5173


def install_packages(home: Home, progress: Progress = lambda what, done, total: None) -> InstallReceipt:
    """Blocks. Downloads what is missing, completely or not at all. Idempotent. Runs no code of the packages."""
    lock = (importlib.resources.files("freehold.starter") / "packages-lock.json").read_bytes()
    return install_npm_packages(home, NAME, lock, progress)
