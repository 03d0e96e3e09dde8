"""Which backend is examined, and the manifest that says it."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.computer.registry import DEFAULT_BACKEND
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.manifest.loader import LoadedManifest

ENGINE_VARIABLE = "SANDBOX_HOST"
"""Where a container engine is reached, if not where it usually is."""
ATTACHED = "attached"


@dataclass(frozen=True)
class BackendChoice:
    """The backend that is examined. `host` is where its engine is reached, if not where it usually is."""

    name: str
    host: str | None


def choose_backend(home: Home, wanted: str | None) -> BackendChoice:
    """The wanted one, else that of the manifest; its engine where the manifest or SANDBOX_HOST says.

    The address in the manifest is that of the engine there, and of no other.
    """
    loaded = load_own_manifest(home)
    if loaded is not None and not loaded.errors:
        computer = loaded.manifest.computer
        host = computer.host if wanted in (None, computer.backend) else None
        return BackendChoice(wanted or computer.backend, host or os.environ.get(ENGINE_VARIABLE))
    return BackendChoice(wanted or DEFAULT_BACKEND, os.environ.get(ENGINE_VARIABLE))


def load_own_manifest(home: Home) -> "LoadedManifest | None":
    """None when the home has none."""
    from freehold.manifest import load_manifest

    return load_manifest(home.manifest, os.environ, home=home.root) if home.manifest.exists() else None
