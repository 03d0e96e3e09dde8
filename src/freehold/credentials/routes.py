"""`/v1/credentials`: what agents may use without seeing it, and each use."""

import asyncio

from freehold.credentials.bodies import CredentialBody, describe_credential
from freehold.gateway.context import RouteContext
from freehold.gateway.routing import get

MAX_SHOWN = 20


class HostCredentialRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._access = context.services.computer_access

    @get("/v1/credentials", scope="read")
    async def list_credentials(self) -> list[CredentialBody]:
        """The credentials of the manifest, with their last uses."""
        keyring = self._access.keyring
        stored = {one.name for one in await asyncio.to_thread(self._access.vault.list)}
        newest = list(keyring.recent)[::-1]
        return [
            describe_credential(
                one,
                [use for use in newest if use.credential == one.name][:MAX_SHOWN],
                count=keyring.counts[one.name],
                has_secret=one.secret in stored,
            )
            for one in keyring.credentials
        ]
