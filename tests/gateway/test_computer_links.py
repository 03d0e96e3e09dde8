"""The gateway's links to several computers: each has its own ports."""

import asyncio
from pathlib import Path

import pytest
from tests.support.condition import DEADLINE

from freehold.computer import Computer, ComputerSpec, Machine, Tunnel, launch
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.library.tunnel import TunnelHandler
from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.gateway.computer_link import ComputerLink
from freehold.home import Home, find_home
from freehold.manifest import Manifest
from freehold.timeline import Timeline

CALL = f"exec 3<>/dev/tcp/127.0.0.1/{EGRESS_PORT}; cat <&3"


def say(words: bytes) -> TunnelHandler:
    async def handle(tunnel: Tunnel) -> None:
        await tunnel.write(words)

    return handle


async def start(home: Home, folder: Path, name: str) -> Machine:
    for part in ("workspace", "home"):
        (folder / name / part).mkdir(parents=True, exist_ok=True)
    spec = ComputerSpec(folder / name / "workspace", folder / name / "home")
    return await launch(spec, home.computer_socket(name))


async def call(computer: Computer) -> bytes:
    return (await computer.run(["bash", "-c", CALL], timeout=DEADLINE)).stdout


async def test_each_computer_gets_its_own_ports(tmp_path: Path) -> None:
    home = find_home(tmp_path / "home")
    home.run.mkdir(parents=True)
    home.root.mkdir()
    home.vault.mkdir(mode=0o700)
    machines = [await start(home, tmp_path, name) for name in ("main", "second", "third")]
    timeline = Timeline(home.timeline)
    access = ComputerAccess(home, Manifest(), timeline)
    serving = asyncio.create_task(access.run())
    try:
        async with (
            asyncio.timeout(DEADLINE),
            access.link_computer("second", {EGRESS_PORT: say(b"two")}) as second,
            access.link_computer("third", {EGRESS_PORT: say(b"three")}) as third,
        ):
            await second.wait_served()
            await third.wait_served()
            await access._main.wait_served()
            assert await call(access.find_computer("second")) == b"two"
            assert await call(access.find_computer("third")) == b"three"
            assert b"two" not in await call(access.computer)
            assert access.find_computer("main") is access.computer
            with pytest.raises(FreeholdError) as caught:
                async with access.link_computer("second", {}):
                    pass
            assert caught.value.code == "computer.name-taken"
            await machines[1].stop(0)
            assert await call(access.find_computer("third")) == b"three"
            assert (await access.computer.run("true")).ok
        with pytest.raises(FreeholdError) as caught:
            access.find_computer("second")
        assert caught.value.code == "computer.not-connected"
        assert "main" in caught.value.hint
        assert (await access.computer.run("true")).ok
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for machine in machines:
            await machine.stop(0)
        timeline.close()


async def test_a_prompt_waits_for_a_computer_that_is_being_restarted(tmp_path: Path) -> None:
    """Also when the link to the one before was lost already, and none to the next is made yet."""
    home = find_home(tmp_path / "home")
    home.run.mkdir(parents=True)
    machine = await start(home, tmp_path, "main")
    link = ComputerLink("main", home.computer_socket(), {EGRESS_PORT: say(b"one")})
    serving = asyncio.create_task(link.run())
    try:
        async with asyncio.timeout(DEADLINE):
            await link.wait_served()
            lost = asyncio.Event()
            link.computer.subscribe(lambda state, error: lost.set() if state == "lost" else None)
            await machine.stop(0)
            await lost.wait()
            waiting = asyncio.create_task(link.wait_served())
            await asyncio.sleep(0)
            assert not waiting.done()
            machine = await start(home, tmp_path, "main")
            await waiting
            assert await call(link.computer) == b"one"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await machine.stop(0)
