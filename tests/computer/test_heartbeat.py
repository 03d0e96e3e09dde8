import asyncio
from pathlib import Path

from tests.computer.hostile import Peer, hostile_guest
from tests.support.condition import until

from freehold.computer.contract.transport import SocketTransport
from freehold.computer.library.heartbeat import Heartbeat
from freehold.computer.library.link import Link


async def healthy(link: Link) -> bool:
    return link.health == "healthy"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_unhealthy_after_ten_seconds_and_lost_after_thirty() -> None:
    clock = Clock()
    pulse = Heartbeat(clock)
    seen = []
    for seconds in (0, 9.9, 10, 29.9, 30):
        clock.now = 100.0 + seconds
        seen.append(pulse.health)
    assert seen == ["healthy", "healthy", "unhealthy", "unhealthy", "lost"]
    pulse.record_activity()
    assert pulse.health == "healthy"


async def test_a_silent_guest_loses_its_link(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.until_cut()

    clock = Clock()
    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path), clock=clock)
        assert await healthy(link)
        clock.now += 12
        link.send_heartbeat()
        assert link.health == "unhealthy"
        assert not link.ended.done()
        clock.now += 20
        link.send_heartbeat()
        assert (await link.ended).code == "link.lost"


async def test_a_guest_that_answers_pings_stays_healthy(tmp_path: Path) -> None:
    from freehold.computer.library import frames

    answered = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        kind, _, _ = await peer.receive()
        assert kind == frames.PING
        peer.send(frames.PONG, 0)
        answered.set()
        await peer.until_cut()

    clock = Clock()
    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path), clock=clock)
        clock.now += 12
        link.send_heartbeat()
        await answered.wait()
        await until(lambda: healthy(link))
        link.close()


async def test_a_suspended_host_does_not_count_as_a_silent_guest(tmp_path: Path) -> None:
    """A host whose loop stopped for a minute sent no pings, so it got no answers."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.until_cut()

    clock = Clock()
    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path), clock=clock)
        clock.now += 60
        link._last_beat -= 60
        link.send_heartbeat()
        assert await healthy(link)
        link.close()
