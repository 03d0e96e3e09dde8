"""The Freehold that runs in this home, for commands that need more than its files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client._sync.freehold import SyncFreehold
    from freehold.identity.tokens import Scope


@contextmanager
def running_freehold(home: Home, verb: str, *scopes: "Scope") -> "Iterator[SyncFreehold]":
    """A client of it, with a token that lasts as long as the block."""
    from freehold.cli._temporary_token import temporary_token
    from freehold.client import Freehold
    from freehold.identity.tokens import ApiTokens
    from freehold.manifest import load_manifest

    manifest = load_manifest(home.manifest, os.environ, home=home.root).manifest
    if not home.identity.exists():
        raise FreeholdError(
            "keeper.not-running", f"Freehold has never run in {home.root}", hint="Start it: freehold up"
        )
    with (
        ApiTokens(home.identity, owner=manifest.owner.did) as tokens,
        temporary_token(tokens, verb, *scopes) as secret,
        Freehold.sync(f"http://localhost:{manifest.gateway.port}", token=secret) as freehold,
    ):
        yield freehold
