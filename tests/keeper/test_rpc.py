"""The keeper's socket: private, bounded, and patient only with those who read."""

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.client import KeeperClient, call_keeper, follow_keeper
from freehold.keeper.methods import Methods, NoParams
from freehold.keeper.rpc import RpcLimits, RpcServer
from freehold.keeper.wire import decode, encode


@dataclass(frozen=True)
class Greeting:
    name: str
    times: int = 1


class House:
    """Methods to ask, with doors that tests open."""

    def __init__(self) -> None:
        self.methods = Methods()
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.finished = asyncio.Event()
        self.stream_closed = asyncio.Event()
        self.methods.add_call("greet", Greeting, self._greet)
        self.methods.add_call("slow", NoParams, self._slow)
        self.methods.add_call("break", NoParams, self._break)
        self.methods.add_call("refuse", NoParams, self._refuse)
        self.methods.add_stream("count", Greeting, self._count)
        self.methods.add_stream("flood", NoParams, self._flood)

    async def _greet(self, params: Greeting) -> str:
        return f"hello {params.name}" * params.times

    async def _slow(self, _: NoParams) -> str:
        self.began.set()
        await self.go_on.wait()
        self.finished.set()
        return "at last"

    async def _break(self, _: NoParams) -> None:
        raise ZeroDivisionError("the secret reason")

    async def _refuse(self, _: NoParams) -> None:
        raise FreeholdError("test.refused", "Not today", hint="Come tomorrow")

    async def _count(self, params: Greeting) -> AsyncIterator[int]:
        for number in range(params.times):
            yield number

    async def _flood(self, _: NoParams) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 65536
        finally:
            self.stream_closed.set()


@contextlib.asynccontextmanager
async def serving(home: Home, limits: RpcLimits | None = None) -> AsyncIterator[House]:
    house = House()
    async with RpcServer(home.keeper_socket, house.methods, limits).serve():
        yield house


async def test_a_call_is_answered_to_both_clients(home: Home) -> None:
    async with serving(home):
        assert await KeeperClient(home).call("greet", {"name": "Ada"}) == "hello Ada"
        assert await asyncio.to_thread(call_keeper, home, "greet", {"name": "Ada"}) == "hello Ada"


async def test_what_is_told_is_finished_though_nobody_waits_for_it(home: Home) -> None:
    async with serving(home) as house:
        await KeeperClient(home).tell("slow")
        async with asyncio.timeout(10):
            await house.began.wait()
            house.go_on.set()
            await house.finished.wait()
    with pytest.raises(FreeholdError, match="No keeper answers"):
        await KeeperClient(home).tell("slow")


async def test_a_stream_comes_in_order_and_ends(home: Home) -> None:
    async with serving(home):
        params = {"name": "", "times": 50}
        assert [number async for number in KeeperClient(home).stream("count", params)] == list(range(50))
        assert await asyncio.to_thread(lambda: list(follow_keeper(home, "count", params))) == list(range(50))


async def test_nobody_home_is_explained_with_the_way_to_start(home: Home) -> None:
    for ask in (KeeperClient(home).call("greet"), asyncio.to_thread(call_keeper, home, "greet")):
        with pytest.raises(FreeholdError, match="No keeper answers") as caught:
            await ask
        assert caught.value.code == "keeper.not-running"
        assert "freehold up" in caught.value.hint


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("gret", {}, "keeper.unknown-method"),
        ("greet", {}, "keeper.bad-params"),
        ("greet", {"name": 3}, "keeper.bad-params"),
        ("greet", {"name": "a", "times": True}, "keeper.bad-params"),
        ("greet", {"name": "a", "shout": True}, "keeper.bad-params"),
        ("refuse", {}, "test.refused"),
    ],
)
async def test_a_wrong_question_gets_an_explained_error(
    home: Home, method: str, params: dict[str, Any], code: str
) -> None:
    async with serving(home):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call(method, params)
    assert caught.value.code == code


async def test_a_bug_is_shown_only_as_an_id(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(home):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call("break")
    assert "secret" not in str(caught.value)
    error_id = caught.value.hint.split()[-1]
    assert error_id in caplog.text
    assert "the secret reason" in caplog.text


async def test_the_socket_is_for_the_owner_alone(home: Home) -> None:
    async with serving(home):
        assert stat.S_IMODE(home.keeper_socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.run.stat().st_mode) == 0o700
    assert not home.keeper_socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
async def test_another_uid_is_refused_even_where_the_modes_let_it_in() -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))  # not below pytest's own, which nobody else may enter
    home = Home(folder, folder)
    async with serving(home):
        folder.chmod(0o755)
        home.keeper_socket.chmod(0o666)
        ask = (
            "import os, socket; os.setuid(65534)\n"
            f"s = socket.socket(socket.AF_UNIX); s.connect({str(home.keeper_socket)!r})\n"
            'try:\n  s.sendall(b\'{"id":1,"method":"greet","params":{"name":"x"}}\\n\'); print(len(s.recv(100)))\n'
            "except OSError: print(0)"
        )
        done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", ask], capture_output=True, text=True)
        assert done.stdout.strip() == "0", done.stderr
    folder.rmdir()


async def test_a_call_is_finished_though_its_asker_left(home: Home) -> None:
    async with serving(home) as house:
        _, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(encode({"id": 1, "method": "slow", "params": {}}))
        await house.began.wait()
        writer.close()
        await writer.wait_closed()
        house.go_on.set()
        async with asyncio.timeout(5):
            await house.finished.wait()


async def test_a_stream_ends_with_its_asker(home: Home) -> None:
    async with serving(home) as house:
        async with contextlib.aclosing(KeeperClient(home).stream("flood")) as events:
            async for _ in events:
                break
        async with asyncio.timeout(5):
            await house.stream_closed.wait()


async def test_a_reader_that_does_not_read_is_dropped_and_others_are_served(home: Home) -> None:
    async with serving(home, RpcLimits(write_patience=0.05)) as house:
        sleeper = socket.socket(socket.AF_UNIX)
        sleeper.connect(str(home.keeper_socket))
        sleeper.sendall(encode({"id": 1, "method": "flood", "params": {}}))
        async with asyncio.timeout(5):
            await house.stream_closed.wait()
        assert await KeeperClient(home).call("greet", {"name": "Ada"}) == "hello Ada"
        sleeper.close()


async def test_a_line_without_end_is_cut_off(home: Home) -> None:
    async with serving(home, RpcLimits(request_bytes=4096)):
        reader, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(b"x" * 100_000)
        answer = decode(await reader.readline())
        assert answer["error"]["code"] == "keeper.too-long"
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "garbage", [b"\0\xff\n", b"[]\n", b"{}\n", b'{"id":[],"method":"greet"}\n', b"[" * 5000 + b"\n"]
)
async def test_garbage_is_answered_and_the_next_question_too(home: Home, garbage: bytes) -> None:
    async with serving(home):
        reader, writer = await asyncio.open_unix_connection(str(home.keeper_socket))
        writer.write(garbage + encode({"id": 2, "method": "greet", "params": {"name": "Ada"}}))
        assert decode(await reader.readline())["error"]["code"] == "keeper.bad-message"
        assert decode(await reader.readline()) == {"id": 2, "result": "hello Ada"}
        writer.close()


async def test_more_clients_than_allowed_are_turned_away(home: Home) -> None:
    async with serving(home, RpcLimits(clients=2)) as house:
        streams = []
        for _ in range(2):
            house.began.clear()
            streams.append(await asyncio.open_unix_connection(str(home.keeper_socket)))
            streams[-1][1].write(encode({"id": 1, "method": "slow", "params": {}}))
            await house.began.wait()
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call("greet", {"name": "Ada"})
        assert caught.value.code == "keeper.cut-off"
        house.go_on.set()
        for reader, writer in streams:
            assert decode(await reader.readline())["result"] == "at last"
            writer.close()


async def test_an_answer_that_is_too_long_is_an_error_and_not_a_cut(home: Home) -> None:
    async with serving(home, RpcLimits(answer_bytes=1000)):
        with pytest.raises(FreeholdError) as caught:
            await KeeperClient(home).call("greet", {"name": "Ada", "times": 1000})
        assert caught.value.code == "keeper.answer-too-long"


def test_the_client_for_the_command_line_imports_next_to_nothing() -> None:
    script = "import sys, freehold.keeper.client; print([m for m in ('asyncio', 'pydantic', 'starlette', 'sqlite3') if m in sys.modules])"
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": source})
    assert done.stdout.strip() == "[]", done.stderr
