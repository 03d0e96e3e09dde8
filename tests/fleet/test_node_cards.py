"""The GPUs of a node, and the wish for one."""

import asyncio
import os
import signal

import pytest
from tests.fleet.fleet_work import SMALL, remote
from tests.fleet.one_node import OneNode, one_node
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.fleet import start_attempts
from freehold.fleet.node_cards import NodeCards
from freehold.fleet.place import read_place


def test_a_card_is_in_one_computer_at_a_time() -> None:
    cards = NodeCards((1, 0))
    with cards.held(1) as first, cards.held(1) as second:
        assert first == ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
        assert second[0] == "/dev/nvidia1"
        with pytest.raises(FreeholdError, match="0 of this node are free"), cards.held(1):
            pass
        with cards.held(0) as none:
            assert none == ()
    with cards.held(2) as both:
        assert both[:2] == ("/dev/nvidia0", "/dev/nvidia1")


def test_gpus_are_wished_for_in_the_place() -> None:
    assert read_place("ray:///srv/freehold?gpus=2").gpus == 2
    assert read_place("ray:///srv/freehold").gpus == 0
    with pytest.raises(FreeholdError, match="is not a number from 0 to 99"):
        read_place("ray:///srv/freehold?gpus=-1")


def start_with_card(fleet: OneNode) -> "asyncio.Future[Computer]":
    return asyncio.ensure_future(Computer.start(on=f"{fleet.place}?gpus=1", limits=SMALL)._open())


async def test_who_waits_for_a_card_gets_it_when_its_computer_has_let_go_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended by itself. Its room must not be given away while the card is still in it."""
    monkeypatch.setattr(start_attempts, "MAX_BUSY", 0)
    async with one_node(cards=1) as fleet:
        first = await start_with_card(fleet)
        remove = fleet.host._remove

        async def remove_slowly(id: str) -> None:
            for _round in range(2000):  # rounds of the loop, in which the next computer could be started
                await asyncio.sleep(0)
            await remove(id)

        monkeypatch.setattr(fleet.host, "_remove", remove_slowly)
        second = start_with_card(fleet)
        await until(lambda: len(fleet.head.queue) == 1)
        pid = remote(first).guest_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        computer = await second
        assert (await computer.run("echo here")).stdout == b"here\n"
        await first.close()
        await computer.close()
        await until(lambda: fleet.rooms.free_cards == 1)


async def test_a_card_that_is_in_use_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a computer that an earlier head had, of which this Ray knows nothing."""
    monkeypatch.setattr(start_attempts, "PAUSE", 0.01)
    async with one_node(cards=1) as fleet:
        with fleet.host._cards.held(1):
            starting = start_with_card(fleet)
            await until(lambda: fleet.host.asked.count("prepare") == 2)
        computer = await starting
        assert (await computer.run("echo here")).stdout == b"here\n"
        await computer.close()


async def test_a_card_that_never_gets_free_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_attempts, "PAUSE", 0.001)
    async with one_node(cards=1) as fleet:
        with fleet.host._cards.held(1), pytest.raises(FreeholdError, match="0 of this node are free"):
            await start_with_card(fleet)
        assert fleet.host.asked.count("prepare") == start_attempts.MAX_BUSY + 1
