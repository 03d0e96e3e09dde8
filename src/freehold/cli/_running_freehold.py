"""The Freehold that runs in this home, for commands that need more than its files."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from freehold.cli._home_files import read_manifest
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client._async.freehold import AsyncFreehold
    from freehold.client._sync.freehold import SyncFreehold
    from freehold.identity.tokens import Scope


@contextmanager
def running_freehold(home: Home, verb: str, *scopes: "Scope") -> "Iterator[SyncFreehold]":
    """A client of it, with a token that lasts as long as the block."""
    from freehold.client import Freehold

    with _token_of(home, verb, *scopes) as (address, secret), Freehold.sync(address, token=secret) as freehold:
        yield freehold


@asynccontextmanager
async def running_async_freehold(home: Home, verb: str, mark: str, *scopes: "Scope") -> "AsyncIterator[AsyncFreehold]":
    """The same for async commands. With the same `mark` it is the same caller, each time."""
    from freehold.client import Freehold

    with _token_of(home, verb, *scopes, mark=mark) as (address, secret):
        async with Freehold(address, token=secret) as freehold:
            yield freehold


@contextmanager
def _token_of(home: Home, verb: str, *scopes: "Scope", mark: str | None = None) -> Iterator[tuple[str, str]]:
    """Its address, and the secret of a token."""
    from freehold.cli._temporary_token import temporary_token
    from freehold.identity.tokens import ApiTokens

    manifest = read_manifest(home)
    if not home.identity.exists():
        raise FreeholdError(
            "keeper.not-running", f"Freehold has never run in {home.root}", hint="Start it: freehold up"
        )
    with (
        ApiTokens(home.identity, owner=manifest.owner.did) as tokens,
        temporary_token(tokens, verb, *scopes, mark=mark) as secret,
    ):
        yield f"http://localhost:{manifest.gateway.port}", secret
