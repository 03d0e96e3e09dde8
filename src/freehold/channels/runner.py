"""Runs one channel: what is sent, what is received, and what is carried out."""

import asyncio
import time
from typing import TYPE_CHECKING

from freehold.channels.commands import OwnerCommands, Reply, is_stop
from freehold.channels.contract import IncomingMessage, OwnerChannel
from freehold.channels.delivery import ChannelDelivery
from freehold.channels.notices import NoticeWriter
from freehold.channels.reception import ChannelReception, ReceptionHandlers
from freehold.channels.section import ChannelsSection
from freehold.channels.store import ChannelRow
from freehold.errors import FreeholdError
from freehold.observe.logs import log_unexpected

if TYPE_CHECKING:
    from freehold.channels.service import ChannelService
    from freehold.gateway.context import RouteContext


def make_notice_writer(context: "RouteContext", section: ChannelsSection) -> NoticeWriter:
    services = context.services
    store = context.sessions.dependencies.store
    return NoticeWriter(services.timeline, store, section, services.base_url, services.vault.mask)


class ChannelRunner:
    def __init__(
        self, context: "RouteContext", service: "ChannelService", row: ChannelRow, channel: OwnerChannel
    ) -> None:
        self._service = service
        self._row = row
        self._channel = channel
        self._stored = asyncio.Event()
        writer = make_notice_writer(context, service.section)
        self.delivery = ChannelDelivery(row, channel, service.outbox, service.store, writer.is_stale)
        self._commands = OwnerCommands(
            context.services,
            context.sessions,
            service.section,
            service.outbox,
            service.received,
            context.services.vault.mask,
        )
        handlers = ReceptionHandlers(is_stop, self._stop, self._stored.set, self._note_paired, service.tell)
        self._reception = ChannelReception(row, channel, service.store, service.received, service.pairing, handlers)

    async def run(self) -> None:
        """Until cancelled, or until one of its parts fails."""
        parts = []
        if self._row.owner is not None:
            parts.append(self.delivery.run())
        if self._channel.receives:
            parts += [self._reception.run(), self._carry_out()]
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _note_paired(self) -> None:
        words = "This channel is paired with you. Send /help to see what it can do."
        await self._service.tell(self._row.name, f"paired:{time.time_ns()}", words)
        self._service.changed()

    async def _stop(self, row: ChannelRow, message: IncomingMessage) -> None:
        try:
            reply = await self._commands.stop(row)
        except FreeholdError as error:
            reply = Reply(f"The agents may not be stopped: {error.message}. {error.next_step}")
        await self._tell(message, reply)

    async def _carry_out(self) -> None:
        """The owner's messages, one after another."""
        name = self._row.name
        while True:
            self._stored.clear()
            received = await asyncio.to_thread(self._service.received.begin_next, name)
            if received is None:
                await self._stored.wait()
                continue
            try:
                reply = await self._commands.carry_out(self._row, self._channel, received)
            except Exception as error:  # it would be tried again and again
                log_unexpected(error, "a message of the owner cannot be carried out")
                reply = Reply("Freehold has an error and could not carry this out. freehold logs shows it.")
            if reply is not None:
                await self._tell(received.message, reply)
            await asyncio.to_thread(self._service.received.finish, name, received.message.id)

    async def _tell(self, message: IncomingMessage, reply: Reply) -> None:
        key = f"reply:{message.id}"
        await self._service.tell(self._row.name, key, reply.text, session=reply.session, reply_to=message.id)
