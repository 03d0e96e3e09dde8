"""The service of channels in the gateway: runs each channel, and offers what the routes need."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from freehold.channels.contract import ChannelAway, ChannelKind, ChannelRefused, OwnerChannel, PairingOffer
from freehold.channels.kinds import NEEDS_SECRET, make_channel, read_settings, receives
from freehold.channels.outbox import REPLY, DraftMessage, Outbox
from freehold.channels.pairing import Pairing, make_code
from freehold.channels.received import ReceivedMessages
from freehold.channels.section import ChannelsSection
from freehold.channels.store import ChannelRow, ChannelStore, check_channel_name, secret_name
from freehold.channels.subscriptions import PushSubscriptions
from freehold.errors import FreeholdError
from freehold.observe.logs import log_unexpected

if TYPE_CHECKING:
    from freehold.channels.delivery import ChannelDelivery
    from freehold.channels.quiet_hours import ChannelPreferences
    from freehold.gateway.context import RouteContext

RESTART_DELAY = 5.0
TEST_TIMEOUT = 20.0

log = logging.getLogger("freehold.channels")


class ChannelService:
    """`run` runs as long as the gateway. A channel that fails is tried again, and touches nothing else."""

    def __init__(self, context: "RouteContext") -> None:
        services = context.services
        self._context = context
        self._vault = services.vault
        self.section = services.manifest.section(ChannelsSection)
        self.store = ChannelStore(services.timeline)
        self.outbox = Outbox(services.timeline)
        self.received = ReceivedMessages(services.timeline)
        self.pairing = Pairing(services.timeline)
        self.subscriptions = PushSubscriptions(services.timeline, self.store, self._vault, services.base_url)
        self._changed = asyncio.Event()
        self._prepared = asyncio.Event()
        self._deliveries: dict[str, ChannelDelivery] = {}

    async def run(self) -> None:
        if not self.section.enabled:
            return
        await self._prepare()
        async with asyncio.TaskGroup() as group:
            running: dict[str, tuple[ChannelRow, asyncio.Task[None]]] = {}
            writer: asyncio.Task[None] | None = None
            while True:
                self._changed.clear()
                try:
                    rows = {row.name: row for row in await asyncio.to_thread(self.store.list)}
                except FreeholdError as error:
                    log.warning("the channels cannot be read", extra={"error": error.message})
                    await asyncio.sleep(RESTART_DELAY)
                    continue
                for name, (before, task) in list(running.items()):
                    if name not in rows or _identity(rows[name]) != _identity(before):
                        task.cancel()
                        del running[name]
                        await asyncio.wait((task,))
                for name, row in rows.items():
                    if name not in running:
                        running[name] = (row, group.create_task(self._keep_running(name)))
                if writer is None and any(row.owner is not None for row in rows.values()):
                    writer = group.create_task(self._keep_writing())
                await self._changed.wait()

    # What the routes need

    async def list(self) -> list[ChannelRow]:
        await self._ready()
        return await asyncio.to_thread(self.store.list)

    async def add(
        self, kind: ChannelKind, name: str, settings: Mapping[str, Any], secret: str | None, *, who: str
    ) -> ChannelRow:
        """Raises `channels.bad-value`, `.bad-name`, `.exists`, `.no-key`, or what the vault raises."""
        await self._ready()
        check_channel_name(name)
        if kind == "webpush":
            raise FreeholdError(
                "channels.bad-request",
                "Push messages are turned on in the browser that shall get them",
                hint="Open the page Channels in that browser",
            )
        checked = read_settings(kind, settings)
        if secret is None and (kind in NEEDS_SECRET or checked.get("user")):
            raise FreeholdError("channels.no-key", f"{kind} needs a secret: a token or a password", hint="Give it too")
        if await asyncio.to_thread(self.store.find, name) is not None:
            raise FreeholdError("channels.exists", f"There is a channel {name} already", hint="Remove it first")
        if secret is not None:
            await asyncio.to_thread(self._vault.set, secret_name(name), secret)
        await asyncio.to_thread(partial(self.store.add, name, kind, checked, who=who))
        self._changed.set()
        return await asyncio.to_thread(self.store.get, name)

    async def remove(self, name: str, *, who: str) -> None:
        await self._ready()
        await asyncio.to_thread(partial(self.store.remove, name, who=who))
        try:
            await asyncio.to_thread(self._vault.remove, secret_name(name))
        except FreeholdError as error:
            if error.code != "secret.not-found":
                raise
        self._changed.set()

    async def begin_pairing(self, name: str, address: str | None) -> tuple[PairingOffer, str, float]:
        """The offer, the code and when it expires. Raises `channels.unreachable`."""
        await self._ready()
        row = await asyncio.to_thread(self.store.get, name)
        code = make_code()
        channel = self._make(row)
        try:
            offer = await channel.offer_pairing(code, address)
        except (ChannelAway, ChannelRefused) as error:
            raise _unreachable(name, error) from None
        finally:
            await channel.close()
        expires = await asyncio.to_thread(self.pairing.begin, name, code, offer.expected)
        return offer, code, expires

    async def confirm_pairing(self, name: str, code: str, *, who: str) -> ChannelRow:
        """Raises `channels.wrong-answer`."""
        await self._ready()
        row = await asyncio.to_thread(self.store.get, name)
        await asyncio.to_thread(partial(self.pairing.confirm, row, code, who=who))
        self._changed.set()
        return await asyncio.to_thread(self.store.get, name)

    async def try_channel(self, name: str) -> None:
        """Sends a message now. Raises `channels.not-paired.conflict` or `channels.unreachable`."""
        await self._ready()
        row = await asyncio.to_thread(self.store.get, name)
        if row.owner is None:
            raise FreeholdError(
                "channels.not-paired.conflict", f"{name} is not paired with you", hint=f"freehold channels pair {name}"
            )
        key = f"test:{time.time_ns()}"
        await self.tell(name, key, "This is a test. Messages reach you here.")
        with suppress(TimeoutError):
            async with asyncio.timeout(TEST_TIMEOUT):
                while True:
                    delivery = self._deliveries.get(name)
                    if delivery is not None:
                        delivery.retry_now()
                    found = await asyncio.to_thread(self.outbox.find_state, name, key)
                    if found is not None and found[0] == "sent":
                        return
                    if found is not None and found[0] == "refused":
                        raise _unreachable(name, found[1] or "it was refused")
                    await asyncio.sleep(0.2)
        row = await asyncio.to_thread(self.store.get, name)
        raise _unreachable(name, row.error or "it was not sent in time")

    async def set_preferences(self, name: str, preferences: "ChannelPreferences", *, who: str) -> ChannelRow:
        await self._ready()
        await asyncio.to_thread(partial(self.store.set_preferences, name, preferences, who=who))
        self._changed.set()
        return await asyncio.to_thread(self.store.get, name)

    def changed(self) -> None:
        """Something was changed in the tables."""
        self._changed.set()

    async def tell(
        self, name: str, key: str, text: str, *, session: str | None = None, reply_to: str | None = None
    ) -> None:
        """A message of Freehold itself to the owner, at once. Raises nothing when it cannot be stored."""
        draft = DraftMessage(key, REPLY, "Freehold", text, self._link(session), time.time(), session, reply_to=reply_to)
        try:
            await asyncio.to_thread(self.outbox.add, name, draft)
        except FreeholdError as error:
            log.warning("a message cannot be stored", extra={"channel": name, "error": error.message})
        delivery = self._deliveries.get(name)
        if delivery is not None:
            delivery.wake()

    # Running

    async def _prepare(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.store.prepare)
            except FreeholdError as error:  # the disk may be full
                log.warning("the tables of channels cannot be made", extra={"error": error.message})
                await asyncio.sleep(RESTART_DELAY)
            else:
                self._prepared.set()
                return

    async def _ready(self) -> None:
        if not self.section.enabled:
            raise FreeholdError(
                "channels.stopped", "Channels are switched off", hint="Set channels.enabled = true in freehold.toml"
            )
        await self._prepared.wait()

    async def _keep_running(self, name: str) -> None:
        """One channel, as long as it exists. Whatever goes wrong in it, the others go on."""
        while True:
            try:
                await self._run_channel(name)
            except FreeholdError as error:
                log.warning("a channel has stopped for a moment", extra={"channel": name, "error": error.message})
                await self._note_away(name, error.message)
            except Exception as error:
                log_unexpected(error, "a channel has failed")
                await self._note_away(name, "an error of Freehold; freehold logs shows it")
            await asyncio.sleep(RESTART_DELAY)

    async def _run_channel(self, name: str) -> None:
        from freehold.channels.runner import ChannelRunner

        row = await asyncio.to_thread(self.store.find, name)
        if row is None or (row.owner is None and not receives(row.kind)):
            await asyncio.Event().wait()
            return
        channel = self._make(row)
        runner = ChannelRunner(self._context, self, row, channel)
        self._deliveries[name] = runner.delivery
        try:
            await runner.run()
        finally:
            self._deliveries.pop(name, None)
            await asyncio.shield(channel.close())

    async def _note_away(self, name: str, words: str) -> None:
        try:
            await asyncio.to_thread(self.store.set_state, name, "away", words)
        except FreeholdError as error:
            log.warning("the state of a channel cannot be stored", extra={"channel": name, "error": error.message})

    async def _keep_writing(self) -> None:
        """Brings what happens into the outbox."""
        from freehold.channels.notices import KINDS
        from freehold.channels.runner import make_notice_writer

        await self._context.sessions.ready.wait()
        writer = make_notice_writer(self._context, self.section)
        while True:
            try:
                after = await asyncio.to_thread(self.store.read_position)
                async with aclosing(self._context.services.timeline.follow(after, KINDS)) as events:
                    async for event in events:
                        rows = await asyncio.to_thread(self.store.list)
                        try:
                            await asyncio.to_thread(writer.write, event, rows)
                        except (FreeholdError, sqlite3.Error):
                            raise  # it is told when it can be stored
                        except Exception as error:
                            # A bug in the words of one event must not silence all that come after it.
                            log_unexpected(error, "an event cannot be told")
                            await asyncio.to_thread(writer.skip, event)
                        for delivery in list(self._deliveries.values()):
                            delivery.wake()
            except FreeholdError as error:
                log.warning("news cannot be stored for channels", extra={"error": error.message})
            except Exception as error:
                log_unexpected(error, "news cannot be written for channels")
            await asyncio.sleep(RESTART_DELAY)

    def _make(self, row: ChannelRow) -> OwnerChannel:
        messages = self._context.services.direct_messages
        return make_channel(row, partial(self._vault.get, secret_name(row.name)), self.subscriptions, messages)

    def _link(self, session: str | None) -> str:
        base = self._context.services.base_url
        return base if session is None else f"{base}/sessions?id={session}"


def _identity(row: ChannelRow) -> tuple[object, ...]:
    """What a channel's tasks were started with."""
    return (row.kind, row.settings, row.owner, row.added, row.paired)


def _unreachable(name: str, error: object) -> FreeholdError:
    return FreeholdError(
        "channels.unreachable", f"{name} cannot be used: {error}", hint="Check its settings, and try again"
    )
