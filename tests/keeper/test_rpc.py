"""The keeper's socket: private to its user, bounded, and not blocked by clients that do not read."""

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.client import KeeperClient, call_keeper
from freehold.keeper.methods import RpcMethods
from freehold.keeper.rpc import RpcLimits, RpcServer
from freehold.keeper.wire import decode_message, encode_message
from freehold.typed_call import TypedCall, TypedStream


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Number:
    number: int


@dataclass(frozen=True)
class Greet(TypedCall[Text]):
    method: ClassVar[str] = "greet"
    name: str
    times: int = 1


@dataclass(frozen=True)
class WorkSlowly(TypedCall[Text]):
    method: ClassVar[str] = "slow"


@dataclass(frozen=True)
class Break(TypedCall[Text]):
    method: ClassVar[str] = "break"


@dataclass(frozen=True)
class AnswerWrongType(TypedCall[Text]):
    method: ClassVar[str] = "wrong-type"


@dataclass(frozen=True)
class Refuse(TypedCall[Text]):
    method: ClassVar[str] = "refuse"


@dataclass(frozen=True)
class Count(TypedStream[Number]):
    method: ClassVar[str] = "count"
    times: int


@dataclass(frozen=True)
class Flood(TypedStream[Text]):
    method: ClassVar[str] = "flood"


class ExampleMethods:
    """Methods to call, with events that tests set and wait for."""

    def __init__(self) -> None:
        self.methods = RpcMethods()
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.finished = asyncio.Event()
        self.stream_closed = asyncio.Event()
        self.methods.add_call(Greet, self._greet)
        self.methods.add_call(WorkSlowly, self._work_slowly)
        self.methods.add_call(Break, self._break)
        self.methods.add_call(AnswerWrongType, self._answer_wrong_type)
        self.methods.add_call(Refuse, self._refuse)
        self.methods.add_stream(Count, self._count)
        self.methods.add_stream(Flood, self._flood)

    async def _greet(self, call: Greet) -> Text:
        return Text(f"hello {call.name}" * call.times)

    async def _work_slowly(self, _: WorkSlowly) -> Text:
        self.began.set()
        await self.go_on.wait()
        self.finished.set()
        return Text("done")

    async def _break(self, _: Break) -> Text:
        raise ZeroDivisionError("the secret reason")

    async def _answer_wrong_type(self, _: AnswerWrongType) -> Number:
        return Number(3)

    async def _refuse(self, _: Refuse) -> Text:
        raise FreeholdError("test.refused", "Not today", hint="Try tomorrow")

    async def _count(self, stream: Count) -> AsyncGenerator[Number, None]:
        for number in range(stream.times):
            yield Number(number)

    async def _flood(self, _: Flood) -> AsyncGenerator[Text, None]:
        try:
            while True:
                yield Text("x" * 65536)
        finally:
            self.stream_closed.set()


@contextlib.asynccontextmanager
async def serving(home: Home, limits: RpcLimits | None = None) -> AsyncIterator[ExampleMethods]:
    server = ExampleMethods()
    async with RpcServer(home.keeper_socket, server.methods, limits).serve():
        yield server


async def send(home: Home, method: str, params: Any) -> dict[str, Any]:
    """The raw reply to a raw request."""
    reader, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
    try:
        writer.write(encode_message({"id": 1, "method": method, "params": params}))
        return decode_message(await reader.readline())
    finally:
        writer.close()


async def test_both_clients_get_the_reply_to_a_call(home: Home) -> None:
    async with serving(home):
        assert await KeeperClient(home).call(Greet("Ada")) == Text("hello Ada")
        assert await asyncio.to_thread(call_keeper, home, Greet("Ada")) == Text("hello Ada")


async def test_a_call_sent_without_waiting_is_finished(home: Home) -> None:
    async with serving(home) as server:
        await KeeperClient(home).send(WorkSlowly())
        async with asyncio.timeout(DEADLINE):
            await server.began.wait()
            server.go_on.set()
            await server.finished.wait()
    with pytest.raises(FreeholdError, match="No keeper runs"):
        await KeeperClient(home).send(WorkSlowly())


async def test_a_stream_arrives_in_order_and_ends(home: Home) -> None:
    async with serving(home):
        found = [item.number async for item in KeeperClient(home).stream(Count(50))]
        assert found == list(range(50))


async def test_without_a_keeper_the_error_says_how_to_start_one(home: Home) -> None:
    for work in (KeeperClient(home).call(Greet("Ada")), asyncio.to_thread(call_keeper, home, Greet("Ada"))):
        with pytest.raises(FreeholdError, match="No keeper runs") as caught:
            await work
        assert caught.value.code == "keeper.not-running"
        assert "freehold up" in caught.value.hint


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("gret", {}, "keeper.unknown-method"),
        ("greet", {}, "keeper.bad-params"),
        ("greet", [], "keeper.bad-params"),
        ("greet", {"name": 3}, "keeper.bad-params"),
        ("greet", {"name": None}, "keeper.bad-params"),
        ("greet", {"name": "a", "times": True}, "keeper.bad-params"),
        ("greet", {"name": "a", "times": 1.5}, "keeper.bad-params"),
        ("greet", {"name": "a", "shout": True}, "keeper.bad-params"),
        ("count", {}, "keeper.bad-params"),
        ("slow", {"fast": True}, "keeper.bad-params"),
        ("refuse", {}, "test.refused"),
    ],
)
async def test_a_wrong_request_gets_an_error_with_a_code(home: Home, method: str, params: Any, code: str) -> None:
    async with serving(home):
        assert (await send(home, method, params))["error"]["code"] == code


async def test_a_bug_is_shown_only_as_an_id(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(home):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call(Break())
    assert "secret" not in str(caught.value)
    error_id = caught.value.hint.partition("--error ")[2].split()[0]
    assert error_id in caplog.text
    assert "the secret reason" in caplog.text


async def test_a_reply_of_another_type_than_declared_is_never_sent(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(home):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call(AnswerWrongType())
    assert caught.value.code == "keeper.bug"
    assert "must answer Text, not Number" in caplog.text


@pytest.mark.parametrize(
    "reply",
    [
        b'{"id":1,"result":{}}\n',
        b'{"id":1,"result":{"text":3}}\n',
        b'{"id":1,"result":{"text":"a","more":1}}\n',
        b'{"id":1,"result":null}\n',
        b'{"id":1,"result":[]}\n',
        b'{"id":1}\n',
    ],
)
async def test_both_clients_refuse_a_reply_of_the_wrong_type(home: Home, reply: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(reply)
        writer.close()

    async with await asyncio.start_unix_server(answer, str(home.keeper_socket)):
        for work in (KeeperClient(home).call(Greet("Ada")), asyncio.to_thread(call_keeper, home, Greet("Ada"))):
            with pytest.raises(FreeholdError) as caught:
                await work
            assert caught.value.code == "keeper.bad-reply"


async def test_the_client_refuses_an_item_of_the_wrong_type(home: Home) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"id":1,"event":{"number":1}}\n{"id":1,"event":{"number":"two"}}\n')
        writer.close()

    async with (
        await asyncio.start_unix_server(answer, str(home.keeper_socket)),
        contextlib.aclosing(KeeperClient(home).stream(Count(2))) as items,
    ):
        assert await anext(items) == Number(1)
        with pytest.raises(FreeholdError, match="number must be a whole number, not str") as caught:
            await anext(items)
        assert caught.value.code == "keeper.bad-reply"


async def test_only_the_owner_can_open_the_socket(home: Home) -> None:
    async with serving(home):
        assert stat.S_IMODE(home.keeper_socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.run.stat().st_mode) == 0o700
    assert not home.keeper_socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")
async def test_another_uid_is_refused_even_where_the_modes_allow_it() -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))  # other users cannot enter pytest's own folders
    home = Home(folder, folder)
    async with serving(home):
        folder.chmod(0o755)
        home.keeper_socket.chmod(0o666)
        script = (
            "import os, socket; os.setuid(65534)\n"
            f"s = socket.socket(socket.AF_UNIX); s.connect({str(home.keeper_socket)!r})\n"
            'try:\n  s.sendall(b\'{"id":1,"method":"greet","params":{"name":"x"}}\\n\'); print(len(s.recv(100)))\n'
            "except OSError: print(0)"
        )
        done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True)
        assert done.stdout.strip() == "0", done.stderr
    folder.rmdir()


async def test_a_call_is_finished_after_its_caller_disconnects(home: Home) -> None:
    async with serving(home) as server:
        _, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(encode_message({"id": 1, "method": "slow", "params": {}}))
        await server.began.wait()
        writer.close()
        await writer.wait_closed()
        server.go_on.set()
        async with asyncio.timeout(DEADLINE):
            await server.finished.wait()


async def test_a_stream_ends_when_its_caller_disconnects(home: Home) -> None:
    async with serving(home) as server:
        async with contextlib.aclosing(KeeperClient(home).stream(Flood())) as items:
            async for _ in items:
                break
        async with asyncio.timeout(DEADLINE):
            await server.stream_closed.wait()


async def test_a_client_that_does_not_read_is_disconnected_and_others_are_served(home: Home) -> None:
    async with serving(home, RpcLimits(write_timeout=0.05)) as server:
        idle = socket.socket(socket.AF_UNIX)
        idle.connect(str(home.keeper_socket))
        idle.sendall(encode_message({"id": 1, "method": "flood", "params": {}}))
        async with asyncio.timeout(DEADLINE):
            await server.stream_closed.wait()
        assert await KeeperClient(home).call(Greet("Ada")) == Text("hello Ada")
        idle.close()


async def test_a_line_that_is_too_long_is_refused(home: Home) -> None:
    async with serving(home, RpcLimits(request_bytes=4096)):
        reader, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(b"x" * 100_000)
        reply = decode_message(await reader.readline())
        assert reply["error"]["code"] == "keeper.too-long"
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "garbage", [b"\0\xff\n", b"[]\n", b"{}\n", b'{"id":[],"method":"greet"}\n', b"[" * 5000 + b"\n"]
)
async def test_after_garbage_the_next_request_is_answered(home: Home, garbage: bytes) -> None:
    async with serving(home):
        reader, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(garbage + encode_message({"id": 2, "method": "greet", "params": {"name": "Ada"}}))
        assert decode_message(await reader.readline())["error"]["code"] == "keeper.bad-message"
        assert decode_message(await reader.readline()) == {"id": 2, "result": {"text": "hello Ada"}}
        writer.close()


async def test_more_clients_than_allowed_are_refused(home: Home) -> None:
    async with serving(home, RpcLimits(clients=2)) as server:
        streams = []
        for _ in range(2):
            server.began.clear()
            streams.append(await asyncio.open_unix_connection(str(home.keeper_socket)))
            streams[-1][1].write(encode_message({"id": 1, "method": "slow", "params": {}}))
            await server.began.wait()
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call(Greet("Ada"))
        assert caught.value.code == "keeper.cut-off"
        server.go_on.set()
        for reader, writer in streams:
            assert decode_message(await reader.readline())["result"] == {"text": "done"}
            writer.close()


async def test_a_reply_that_is_too_long_becomes_an_error(home: Home) -> None:
    async with serving(home, RpcLimits(reply_bytes=1000)):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call(Greet("Ada", 1000))
        assert caught.value.code == "keeper.answer-too-long"


@pytest.mark.parametrize("module", ["freehold.keeper.client", "freehold.keeper.calls", "freehold.history.calls"])
def test_the_client_and_the_calls_import_very_little(module: str) -> None:
    heavy = ("asyncio", "pydantic", "starlette", "sqlite3", "blake3", "zstandard")
    script = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": source})
    assert done.stdout.strip() == "[]", done.stderr
