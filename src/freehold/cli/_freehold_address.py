"""Where a Freehold is, and the token for it: of this machine, or of another."""

from collections.abc import Iterator
from contextlib import contextmanager

from freehold.cli._home_files import read_manifest
from freehold.errors import FreeholdError
from freehold.home import Home


@contextmanager
def open_address(home: Home, url: str | None, verb: str) -> Iterator[tuple[str, str | None]]:
    """For a remote Freehold those of `freehold login`; for this one a temporary token."""
    if url is not None:
        yield url, None
        return
    from freehold.cli._temporary_token import temporary_token
    from freehold.identity.tokens import ApiTokens

    manifest = read_manifest(home)
    if not home.identity.exists():
        raise FreeholdError(
            "keeper.not-running", f"Freehold has never run in {home.root}", hint="Start it: freehold up"
        )
    with (
        ApiTokens(home.identity, owner=manifest.owner.did) as tokens,
        # The owner may run `!` commands and answer always, as in a browser.
        temporary_token(tokens, verb, "admin") as secret,
    ):
        yield f"http://localhost:{manifest.gateway.port}", secret
