"""The sign-in of this gateway: its attempt limits and its AT Protocol flow."""

import asyncio
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.gateway.addresses import rate_limit_key
from freehold.gateway.error_responses import RateLimited
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.services import Services
from freehold.identity.sign_ins import SignIn

if TYPE_CHECKING:
    from freehold.identity.atproto.flow import OAuthFlow


class SignInService:
    """Limits attempts to sign in, and loads the AT Protocol flow at its first use."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._flow: OAuthFlow | None = None
        self._per_address = RateLimit(rate=1 / 6, burst=20)
        self._total = RateLimit(rate=1, burst=60)
        self._callbacks = RateLimit(rate=1 / 6, burst=20)

    def count_attempt(self, address: str) -> None:
        """Count one attempt. An attempt that its own address limit refuses does not count towards the total limit."""
        wait = self._per_address.wait(rate_limit_key(address)) or self._total.wait("")
        if wait > 0:
            raise RateLimited("sign-in.too-many", "Too many attempts to sign in", wait)

    def count_callback(self, address: str) -> None:
        """Count one callback of an authorization server, by address only: others must not be able to lock the owner out."""
        if (wait := self._callbacks.wait(rate_limit_key(address))) > 0:
            raise RateLimited("sign-in.too-many", "Too many attempts to sign in", wait)

    def get_flow(self) -> "OAuthFlow":
        if self._flow is None:
            from freehold.identity.atproto.flow import OAuthFlow
            from freehold.identity.atproto.oauth_client import loopback_client, public_client
            from freehold.identity.keys import ensure_client_key, read_client_key

            services = self._services
            manifest = services.manifest
            if manifest.owner.did is None:
                raise FreeholdError(
                    "sign-in.no-owner",
                    "This Freehold has no owner account to sign in with",
                    hint="Set one: freehold init --owner your.handle --force. Until then sign in with: freehold open",
                )
            public = manifest.gateway.public_url
            if public is not None:
                # Made here and not at boot, so that the keeper does not load the cryptography.
                ensure_client_key(services.home)
            client = (
                public_client(public, read_client_key(services.home))
                if public
                else loopback_client(manifest.gateway.port)
            )
            self._flow = OAuthFlow(
                owner=manifest.owner.did,
                client=client,
                database=services.home.identity,
                on_event=services.timeline.append,
                plc_url=manifest.owner.plc_url,
                network=services.network,
            )
        return self._flow

    def close(self) -> None:
        if self._flow is not None:
            self._flow.close()

    async def record_sign_in(self, sign_in: SignIn) -> None:
        data = {"session": sign_in.id, "method": sign_in.method, "address": sign_in.address, "label": sign_in.label}
        await asyncio.to_thread(self._services.timeline.append, "identity.signed_in", data, who="owner")
