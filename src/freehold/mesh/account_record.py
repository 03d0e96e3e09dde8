"""Writes the record into the owner's account that names the key of this Freehold, when the owner agrees to that there."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from freehold.mesh.did_proof import COLLECTION, make_record
from freehold.mesh.nostr.keys import show_key

if TYPE_CHECKING:
    from freehold.identity.atproto.flow import OAuthFlow
    from freehold.identity.atproto.owner_repository import OwnerRepository
    from freehold.mesh.mesh import Mesh


class AccountRecord:
    """Each time the owner signs in at the account for it, and the tokens are revoked when the record is written."""

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        self._flow: OAuthFlow | None = None

    @property
    def flow(self) -> "OAuthFlow":
        """Raises `sign-in.no-owner`."""
        if self._flow is None:
            from freehold.identity.atproto.flow import OAuthFlow
            from freehold.identity.atproto.oauth_client import record_client

            services = self._mesh.services
            client = self._mesh.context.sign_in.get_flow().client
            owner = services.manifest.owner
            assert owner.did is not None  # otherwise there is no flow for signing in
            self._flow = OAuthFlow(
                owner=owner.did,
                client=record_client(client, COLLECTION),
                database=services.home.identity,
                on_event=services.timeline.append,
                plc_url=owner.plc_url,
                network=services.network,
            )
        return self._flow

    async def finish(self, query: Iterable[tuple[str, str]], binding: str | None) -> None:
        """The owner is back from the account. Raises SignInProblem."""
        await self.flow.finish(query, binding, self._write)

    def close(self) -> None:
        """Idempotent."""
        if self._flow is not None:
            self._flow.close()
            self._flow = None

    async def _write(self, account: "OwnerRepository") -> None:
        """Names the key, and no longer those that this Freehold had before."""
        mesh = self._mesh
        public, timeline = mesh.key.public, mesh.services.timeline
        await account.put(COLLECTION, show_key(public), make_record(public, datetime.now(UTC).isoformat()))
        replaced = await asyncio.to_thread(timeline.read, kinds=["mesh.key_replaced"])
        for npub in {str(one.data["before"]) for one in replaced} - {show_key(public)}:
            await account.delete(COLLECTION, npub)
        data = {"npub": show_key(public), "did": mesh.did}
        await asyncio.to_thread(timeline.append, "mesh.key_named", data, who="owner")
