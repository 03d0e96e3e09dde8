"""The life of a computer and its links: restarts, several links, reconnection."""

import asyncio
import os
import stat
import tempfile
from pathlib import Path

import pytest
from tests.computer.hostile import Peer, hostile_guest

from freehold.computer import Computer, ComputerSpec, Machine, Tunnel
from freehold.computer.contract.transport import InheritedSocket, SocketTransport
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.launch import launch
from freehold.errors import FreeholdError


@pytest.fixture
def spec(tmp_path: Path) -> ComputerSpec:
    tmp_path.chmod(0o755)
    for name in ("workspace", "home"):
        (tmp_path / name).mkdir()
    return ComputerSpec(workspace=tmp_path / "workspace", home=tmp_path / "home")


async def test_a_client_reconnects_when_the_keeper_starts_the_computer_again(
    spec: ComputerSpec, tmp_path: Path
) -> None:
    """The gateway's link reconnects, its ports are opened again, and the files are still there."""
    path = tmp_path / "link"
    states: list[str] = []

    async def greet(tunnel: Tunnel) -> None:
        await tunnel.write(b"hello from the host")

    machine: Machine = await launch(spec, path)
    try:
        async with Computer.connect(path) as computer:
            computer.subscribe(lambda state, error: states.append(state))
            await computer.files.write("kept", b"kept")
            await computer.listen(3128, greet)
            await machine.stop()
            machine = await launch(spec, path)
            await computer.wait_connected()
            assert await computer.files.read("kept") == b"kept"
            client = "import socket; print(socket.create_connection(('127.0.0.1', 3128)).makefile().read())"
            assert (await computer.run(["python3", "-c", client])).stdout == b"hello from the host\n"
            assert "lost" in states
            assert states[-1] == "healthy"
    finally:
        await machine.stop()


async def test_a_call_without_a_computer_is_an_error(spec: ComputerSpec, tmp_path: Path) -> None:
    path = tmp_path / "link"
    machine = await launch(spec, path)
    async with Computer.connect(path) as computer:
        lost = asyncio.Event()
        computer.subscribe(lambda state, error: lost.set() if state == "lost" else None)
        await machine.stop()
        await lost.wait()
        with pytest.raises(FreeholdError) as caught:
            await computer.run("true")
        assert caught.value.code == "computer.unreachable"
    with pytest.raises(FreeholdError) as caught:
        await Computer.connect(path)
    assert caught.value.code == "link.refused"


async def test_a_command_fails_when_its_machine_dies(spec: ComputerSpec, tmp_path: Path) -> None:
    machine = await launch(spec, tmp_path / "link")
    async with Computer.connect(tmp_path / "link") as computer:
        process = await computer.spawn("echo up; cat")
        await process.stdout.read()
        waiting = asyncio.ensure_future(computer.run("sleep 1000"))
        await computer.run("true")
        await machine.stop(0)
        with pytest.raises(FreeholdError) as lost:  # closed, or reset if something was still to be read
            await waiting
        assert lost.value.code == "link.lost"
        with pytest.raises(FreeholdError):
            await process.wait()


async def test_a_silent_computer_becomes_unhealthy_then_lost_then_reconnects(tmp_path: Path) -> None:
    """With a clock of the test: ten and thirty seconds pass at once."""
    now = [0.0]
    states: asyncio.Queue[str] = asyncio.Queue()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        connection = ComputerConnection(SocketTransport(path), clock=lambda: now[0], interval=0.01)
        connection.subscribe(lambda state, error: states.put_nowait(state))
        await connection.open()
        assert await states.get() == "healthy"
        now[0] += 11
        assert await states.get() == "unhealthy"
        now[0] += 20
        connection.link.send_heartbeat()
        assert await states.get() == "lost"
        assert await states.get() == "healthy"
        await connection.close()
        assert await states.get() == "closed"


async def test_a_started_computer_that_dies_is_lost() -> None:
    async with Computer.start() as computer:
        lost = asyncio.Event()
        computer.subscribe(lambda state, error: lost.set())
        assert computer.machine is not None
        await computer.machine.stop(0)
        await lost.wait()
        assert computer.state == "lost"
        with pytest.raises(FreeholdError):
            await computer.wait_connected()


async def test_only_the_owner_may_use_the_socket(spec: ComputerSpec, tmp_path: Path) -> None:
    machine = await launch(spec, tmp_path / "link")
    await (await Computer.connect(tmp_path / "link")).close()
    try:
        found = (tmp_path / "link").stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert found.st_uid == os.geteuid()
    finally:
        await machine.stop()


async def test_many_links_at_once_are_independent(computer: Computer) -> None:
    others = [await Computer.connect(computer.transport) for _ in range(20)]
    try:
        results = await asyncio.gather(*(other.run(f"echo {number}") for number, other in enumerate(others)))
        assert [result.text for result in results] == [f"{number}\n" for number in range(20)]
        await others[0].close()
        assert (await others[1].run("echo on")).ok
    finally:
        for other in others:
            await other.close()


async def test_temporary_folders_are_removed() -> None:
    async with Computer.start() as computer:
        folder = Path(computer.transport.address).parent
        await computer.run("mkdir -p a/b ~/c; touch a/b/x; chmod 0 a/b a ~/c")
        assert folder.exists()
    assert not folder.exists()


async def test_folders_of_the_caller_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "code").mkdir()
    async with Computer.start(workspace=tmp_path / "code") as computer:
        await computer.files.write("made", b"inside")
    assert (tmp_path / "code" / "made").read_bytes() == b"inside"


async def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as caught:
        await Computer.start(workspace=tmp_path / "none")
    assert caught.value.code == "computer.no-folder"


async def test_start_can_be_awaited_and_close_twice() -> None:
    computer = await Computer.start()
    assert (await computer.run("true")).ok
    await computer.close()
    await computer.close()
    with pytest.raises(FreeholdError):
        await computer.run("true")


def test_a_socket_path_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as caught:
        InheritedSocket(tmp_path / ("x" * 100)).listen()
    assert caught.value.code == "computer.bad-socket"


async def test_closing_twice_does_not_change_the_parent_folder() -> None:
    """Removing a folder that is gone must not touch anything else. It once changed the mode of the parent."""
    around = Path(tempfile.gettempdir())
    before = around.stat().st_mode
    computer = await Computer.start()
    await computer.close()
    await computer.close()
    assert around.stat().st_mode == before
