"""A node that was taken over says whatever it likes. It loses its link, and the head and other nodes go on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from tests.fleet.fleet_work import SMALL, remote
from tests.fleet.one_node import OneNode, one_node
from tests.fleet.test_hostile_ray import JUNK
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.fleet import node_link
from freehold.fleet.certificates import make_own_pair, pinned_context
from freehold.fleet.computer_lease import MAX_UNREAD
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.folder_state import SentEntries, StateLimits
from freehold.fleet.node_messages import read_hello, read_node_message
from freehold.fleet.placer import RoomRequest
from freehold.fleet.versions import find_skew, read_versions
from freehold.fleet.wire import Stream, encode_message, read_message

HELLO = {"computers": [], "versions": read_versions(), "ended": {}}
ID = "a" * 32
BAD_HELLOS: list[Any] = [
    {"error": {"code": "fleet.failed", "message": "no", "hint": ""}},
    {"error": []},
    {},
    [],
    {**HELLO, "versions": None},
    {**HELLO, "versions": {"ray": []}},
    {**HELLO, "computers": [[]]},
    {**HELLO, "computers": 7},
    {**HELLO, "ended": {ID: "x"}},
    {**HELLO, "ended": [1]},
    {**HELLO, "more": 1},
]
BAD_MESSAGES: list[Any] = [
    {"id": []},
    {"id": {}, "result": None},
    {"id": 1},
    {"id": None, "error": 7},
    {"notice": "ended"},
    {"notice": "ended", "computer": ID, "code": "x"},
    {"notice": "ended", "computer": [], "code": 1},
    {"notice": [], "computer": ID},
    {"notice": "words", "computer": ID, "words": {}},
    {"notice": "event", "computer": ID, "event": {"limit": 1}},
    {"what": 1},
    "text",
]
BAD_REPLIES: list[Any] = [None, [], {}, {"pid": []}, {"pid": 1, "isolation": {}}, {"code": "x"}, 7, {"missing": 7}]


@settings(max_examples=300, deadline=None)
@given(JUNK)
@example(BAD_HELLOS[0])
def test_what_is_no_message_is_a_bad_message_and_nothing_else(value: Any) -> None:
    for message in (value, {**HELLO, "computers": value}, {"id": 1, "result": value}, {"notice": value}):
        for read in (read_hello, read_node_message):
            if isinstance(message, dict):
                with contextlib.suppress(FreeholdError):
                    read(json.loads(json.dumps(message)))


def test_of_a_long_version_only_its_beginning_is_told() -> None:
    assert len(find_skew({"ray": "9" * 100_000})) < 200


@pytest.mark.parametrize("name", ["\ud800", "a\ud800b"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_name_that_no_folder_can_have_is_refused(name: str, kind: str) -> None:
    for path, content in ((name, "x"), ("plain", name)):
        with pytest.raises(FreeholdError, match="cannot be a name"):
            SentEntries(StateLimits(10, 10)).add([[path, kind, 0, 0, 0, content]])


class LyingNode:
    """Has joined as `liar`. Each connection gets the next hello, and then the next message; requests get `replies`."""

    def __init__(self) -> None:
        self.key = make_own_pair("liar")
        self.hellos: list[Any] = []
        self.messages: list[Any] = []
        self.replies: list[Any] = []
        self.asked: list[str] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if (await read_message(reader))["open"] == "control":
                writer.write(encode_message(self.hellos.pop(0) if self.hellos else HELLO))
                if self.messages and not self.hellos:
                    writer.write(encode_message(self.messages.pop(0)))
                await self._answer((reader, writer))
        writer.transport.abort()

    async def _answer(self, stream: Stream) -> None:
        while True:
            message = await read_message(stream[0])
            if "id" not in message:
                stream[1].write(encode_message({"pong": True}))
                continue
            self.asked.append(message["do"])
            stream[1].write(encode_message({"id": message["id"], **self.answer_with(message["do"])}))

    def answer_with(self, do: str) -> dict[str, Any]:
        return {"result": self.replies.pop(0) if self.replies and do in ("prepare", "stop") else None}


@contextlib.asynccontextmanager
async def with_liar(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[OneNode, LyingNode]]:
    """A head with an honest node and a liar."""
    monkeypatch.setattr(node_link, "RETRY_PAUSE", 0.001)
    liar = LyingNode()
    async with one_node() as fleet:
        context = pinned_context(liar.key, fleet.key.certificate, server=True)
        server = await asyncio.start_server(liar.accept, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        async with server:
            fleet.head.add_node(KnownNode("liar", "127.0.0.1", port, liar.key.certificate, ""))
            yield fleet, liar
            fleet.head.remove_node("liar")
            server.close()


async def test_a_node_that_sends_junk_loses_its_link_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_liar(monkeypatch) as (fleet, liar), Computer.start(on=fleet.place, limits=SMALL) as computer:
        liar.hellos, liar.messages = list(BAD_HELLOS), list(BAD_MESSAGES)
        link = fleet.head.find_link("liar")
        assert link is not None
        link._disconnect()
        await until(lambda: not liar.hellos and not liar.messages)
        await until(lambda: not fleet.head.list_blocked())
        assert (await computer.run("echo here")).stdout == b"here\n"
        assert remote(computer).node == "shed"


@pytest.mark.parametrize("reply", BAD_REPLIES, ids=json.dumps)
async def test_a_computer_whose_node_answers_with_junk_is_started_elsewhere(
    monkeypatch: pytest.MonkeyPatch, reply: Any
) -> None:
    async with with_liar(monkeypatch) as (fleet, liar):
        liar.replies = [reply]
        await until(lambda: not fleet.head.list_blocked())
        chosen = iter(["liar"])

        def choose(_id: str, _request: RoomRequest) -> str:
            return next(chosen, "shed")

        monkeypatch.setattr(fleet.rooms, "choose", choose)
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo here")).stdout == b"here\n"
            assert remote(computer).node == "shed"
        assert "prepare" in liar.asked


async def test_a_node_that_says_much_to_a_client_that_does_not_read_fills_no_memory_of_the_head() -> None:
    async with one_node() as fleet, Computer.start(on=fleet.place, limits=SMALL) as computer:
        (lease,) = fleet.head.leases.values()
        stream, link = remote(computer)._stream, fleet.head.find_link("shed")
        assert stream is not None
        assert link is not None
        assert lease.client is not None
        transport = stream[1].transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        for _ in range(40):
            fleet.host._notify({"notice": "words", "computer": lease.id, "words": "x" * 500_000})
        await link.ask("usage", lease.id)  # all of it has been read
        assert lease.client.transport.get_write_buffer_size() < 2 * MAX_UNREAD
        transport.resume_reading()
        assert (await computer.run("echo here")).stdout == b"here\n"


async def test_a_client_that_sends_junk_loses_its_computer_and_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Programs of this machine are not hostile. They can be wrong."""
    async with one_node() as fleet, Computer.start(on=fleet.place, limits=SMALL) as kept:
        for junk in (
            b"\0\0\0\1{",
            b"\xff\xff\xff\xff",
            encode_message([]),
            encode_message({"do": "stop", "grace": []}),
        ):
            wrong = await Computer.start(on=fleet.place, limits=SMALL)._open()
            stream = remote(wrong)._stream
            assert stream is not None
            stream[1].write(junk)
            assert (await kept.run("echo here")).stdout == b"here\n"
            await wrong.close()
