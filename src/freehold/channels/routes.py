"""`/v1/channels`: add, pair, try and remove channels. No update of a channel is taken here: they are fetched."""

import asyncio
from functools import cached_property, partial

from fastapi import Request

from freehold.channels.bodies import (
    AddChannelBody,
    AddPushSubscriptionBody,
    ChannelInfoBody,
    ChannelPairingBody,
    ChannelRemovedBody,
    ChannelTestBody,
    ConfirmChannelBody,
    PairChannelBody,
    PushKeyBody,
    PushSubscriptionBody,
    SetChannelPreferencesBody,
    describe_channel,
    describe_subscription,
)
from freehold.channels.service import ChannelService
from freehold.channels.store import ChannelRow
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlId, UrlName
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post


class ChannelRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._context = context

    @cached_property
    def _channels(self) -> ChannelService:
        return self._context.service(ChannelService)

    async def _describe(self, row: ChannelRow) -> ChannelInfoBody:
        return describe_channel(row, await asyncio.to_thread(self._channels.outbox.count_waiting, row.name))

    @get("/v1/channels", scope="admin")
    async def list_channels(self) -> list[ChannelInfoBody]:
        """Every channel, by name."""
        return [await self._describe(row) for row in await self._channels.list()]

    @post("/v1/channels", status_code=201, scope="admin")
    async def add_channel(self, body: AddChannelBody, request: Request) -> ChannelInfoBody:
        """Add a channel. Nothing is sent until it is paired."""
        who = principal_of(request.scope).who
        row = await self._channels.add(body.kind, body.name or body.kind, body.settings, body.secret, who=who)
        return await self._describe(row)

    @get("/v1/channels/webpush/key", scope="browser")
    async def get_push_key(self) -> PushKeyBody:
        """The public key for `pushManager.subscribe`. It is made at the first request."""
        from freehold.channels.push_encryption import encode_url, public_point

        await self._channels.list()
        key = await asyncio.to_thread(self._channels.subscriptions.read_key)
        return PushKeyBody(key=encode_url(public_point(key)))

    @get("/v1/channels/webpush/subscriptions", scope="admin")
    async def list_push_subscriptions(self) -> list[PushSubscriptionBody]:
        """The browsers that get messages."""
        await self._channels.list()
        return [describe_subscription(one) for one in await asyncio.to_thread(self._channels.subscriptions.list)]

    @post("/v1/channels/webpush/subscriptions", status_code=201, scope="browser")
    async def add_push_subscription(self, body: AddPushSubscriptionBody, request: Request) -> PushSubscriptionBody:
        """This browser gets messages. It is signed in, so it needs no code."""
        await self._channels.list()
        who = principal_of(request.scope).who
        subscribe = self._channels.subscriptions.add
        made = await asyncio.to_thread(partial(subscribe, body.endpoint, body.p256dh, body.auth, body.label, who=who))
        self._channels.changed()
        return describe_subscription(made)

    @delete("/v1/channels/webpush/subscriptions/{subscription}", scope="admin")
    async def remove_push_subscription(self, subscription: UrlId, request: Request) -> ChannelRemovedBody:
        """This browser gets no more messages."""
        who = principal_of(request.scope).who
        await self._channels.list()
        if not await asyncio.to_thread(partial(self._channels.subscriptions.remove, subscription, who=who)):
            raise FreeholdError("channels.not-found", "There is no such browser")
        return ChannelRemovedBody(name=subscription)

    @delete("/v1/channels/{channel}", scope="admin")
    async def remove_channel(self, channel: UrlName, request: Request) -> ChannelRemovedBody:
        """Remove a channel with its secret and everything that waits for it."""
        await self._channels.remove(channel, who=principal_of(request.scope).who)
        return ChannelRemovedBody(name=channel)

    @post("/v1/channels/{channel}/pair", scope="admin")
    async def pair_channel(self, channel: UrlName, body: PairChannelBody) -> ChannelPairingBody:
        """A one-time code. Whoever says it through the channel within ten minutes is the owner there."""
        offer, code, expires = await self._channels.begin_pairing(channel, body.address)
        return ChannelPairingBody(
            words=offer.words,
            code=None if offer.typed_here else code,
            link=offer.link,
            expires=to_moment(expires),
        )

    @post("/v1/channels/{channel}/confirm", scope="admin")
    async def confirm_channel(self, channel: UrlName, body: ConfirmChannelBody, request: Request) -> ChannelInfoBody:
        """The code that was sent through the channel, for those through which nothing can be received."""
        who = principal_of(request.scope).who
        return await self._describe(await self._channels.confirm_pairing(channel, body.code, who=who))

    @post("/v1/channels/{channel}/test", scope="admin")
    async def test_channel(self, channel: UrlName) -> ChannelTestBody:
        """Send a message now, and wait until the channel has it."""
        await self._channels.try_channel(channel)
        return ChannelTestBody(sent=True)

    @patch("/v1/channels/{channel}/preferences", scope="admin")
    async def set_channel_preferences(
        self, channel: UrlName, body: SetChannelPreferencesBody, request: Request
    ) -> ChannelInfoBody:
        """What is told through the channel, and when."""
        who = principal_of(request.scope).who
        return await self._describe(await self._channels.set_preferences(channel, body.read(), who=who))
