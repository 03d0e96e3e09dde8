"""Reservations that are used again: only for the same request, only where a node is no fuller, and not for long."""

import asyncio
from dataclasses import replace

import pytest
from tests.support.condition import until

from freehold.fleet import spare_rooms
from freehold.fleet.placer import NodeRoom, RoomRequest
from freehold.fleet.spare_rooms import SpareRooms

SMALL = RoomRequest(1, 2**28)


class Ray:
    """Remembers what it was asked, in order."""

    def __init__(self, *names: str) -> None:
        self.is_ready = True
        self.nodes = {name: NodeRoom(4, 2**34, 4, 2**34) for name in names}
        self.said: list[tuple[str, str]] = []
        self.placed: list[tuple[str, str]] = []
        self.wanted: dict[str, str] = {}
        self.labels = {name: {"region": name} for name in names}
        self.rooms = SpareRooms(lambda: self, lambda *found: self.placed.append(found), lambda: self.labels)  # type: ignore[arg-type,return-value]

    def place(self, id: str, request: RoomRequest) -> None:
        self.said.append(("place", id))
        self.wanted[id] = request.on

    def release(self, id: str) -> None:
        self.said.append(("release", id))

    def run_and_end(self, id: str, node: str, request: RoomRequest = SMALL) -> None:
        """A computer that has ended as it should."""
        self.rooms.ask(id, request)
        self.rooms.take_placed(id, node)
        self.rooms.spare(id)
        self.rooms.release(id)
        self.said.clear()


async def test_the_next_computer_of_the_same_limits_gets_it_without_ray() -> None:
    ray = Ray("shed")
    ray.run_and_end("a", "shed")
    ray.rooms.ask("b", SMALL)
    assert ray.placed == [("b", "shed")]
    assert ray.said == []
    ray.rooms.ask("c", SMALL)  # it is taken
    assert ray.said == [("place", "c")]
    ray.rooms.release("b")
    ray.rooms.release("b")
    assert ray.said == [("place", "c"), ("release", "a")]


@pytest.mark.parametrize(
    "other",
    [replace(SMALL, cpus=2), replace(SMALL, memory=1), replace(SMALL, gpus=1), replace(SMALL, labels={"arch": "x"})],
)
async def test_ray_has_all_of_it_back_before_it_is_asked_for_something_else(other: RoomRequest) -> None:
    ray = Ray("shed", "attic")
    ray.rooms.ask("a", SMALL)
    ray.rooms.take_placed("a", "shed")
    ray.run_and_end("b", "attic")
    ray.rooms.spare("a")
    ray.rooms.ask("c", other)
    assert sorted(ray.said[:2]) == [("release", "a"), ("release", "b")]
    assert ray.said[2:] == [("place", "c")]
    assert ray.placed == []


async def test_a_node_that_gets_no_computers_and_one_that_ray_has_lost_get_none_from_here() -> None:
    for request, lost in ((replace(SMALL, not_on=("shed",)), ""), (replace(SMALL, on="attic"), ""), (SMALL, "shed")):
        ray = Ray("shed", "attic")
        ray.run_and_end("a", "shed")
        ray.nodes.pop(lost, None)
        ray.rooms.ask("b", request)
        assert ray.said == [("release", "a"), ("place", "b")]


async def test_a_new_node_gets_its_share() -> None:
    """What ends on a full node is not begun there again while another one is empty."""
    ray = Ray("shed")
    for id in ("a", "b", "c"):
        ray.rooms.ask(id, SMALL)
        ray.rooms.take_placed(id, "shed")
    ray.run_and_end("d", "shed")
    ray.rooms.ask("e", SMALL)
    assert ray.placed == [("e", "shed")]
    ray.rooms.spare("e")
    ray.nodes["attic"] = ray.nodes["shed"]
    ray.rooms.ask("f", SMALL)
    assert ray.said == [("release", "d"), ("place", "f")]


async def test_two_at_once_are_not_put_on_one_node_because_both_had_ended_there() -> None:
    ray = Ray("shed", "attic")
    for id in ("a", "b"):
        ray.rooms.ask(id, SMALL)
        ray.rooms.take_placed(id, "shed")
    for id in ("a", "b"):
        ray.rooms.spare(id)
    ray.said.clear()
    ray.rooms.ask("c", SMALL)
    assert ray.placed == [("c", "shed")]
    ray.rooms.ask("d", SMALL)
    assert ray.placed == [("c", "shed")]
    assert ray.said == [("release", "b"), ("place", "d")]


async def test_one_that_nobody_needs_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_rooms, "SPARE_SECONDS", 0.01)
    ray = Ray("shed")
    ray.run_and_end("a", "shed")
    await until(lambda: ray.said == [("release", "a")])
    ray.rooms.ask("b", SMALL)
    assert ray.said == [("release", "a"), ("place", "b")]


async def test_packed_computers_and_those_without_room_leave_nothing() -> None:
    ray = Ray("shed")
    packed = replace(SMALL, strategy="PACK")
    ray.rooms.ask("a", packed)
    ray.rooms.take_placed("a", "shed")
    ray.rooms.ask("b", SMALL)
    for id in ("a", "b"):
        ray.rooms.spare(id)
        ray.rooms.release(id)
    assert ray.said == [("place", "a"), ("place", "b"), ("release", "a"), ("release", "b")]


PACKED = replace(SMALL, strategy="PACK")


async def test_packed_computers_fill_one_node_before_the_next_also_when_ray_has_not_answered_yet() -> None:
    """Ray would give each the emptiest one. What it says is free is old, and what was asked for counts."""
    ray = Ray("shed", "attic")
    for number in range(9):
        ray.rooms.ask(f"{number}", PACKED)
    assert list(ray.wanted.values()) == ["attic"] * 4 + ["shed"] * 4 + [""]
    ray.rooms.release("2")
    ray.rooms.ask("next", PACKED)
    assert ray.wanted["next"] == "attic"


@pytest.mark.parametrize(
    "request_of",
    [replace(PACKED, not_on=("attic",)), replace(PACKED, labels={"region": "shed"}), replace(PACKED, gpus=1)],
    ids=["avoided", "labels", "gpus"],
)
async def test_packed_computers_go_only_where_they_may_be(request_of: RoomRequest) -> None:
    ray = Ray("shed", "attic")
    ray.nodes["shed"] = replace(ray.nodes["shed"], gpus=1, free_gpus=1)
    ray.rooms.ask("first", PACKED)
    ray.rooms.ask("other", request_of)
    assert ray.wanted == {"first": "attic", "other": "shed"}


async def test_a_node_that_ray_says_is_full_gets_no_packed_computer() -> None:
    """Something else may have room there. One that is asked for on such a node would wait while others are free."""
    ray = Ray("shed", "attic")
    ray.nodes["attic"] = replace(ray.nodes["attic"], free_cpus=0.5)
    ray.rooms.ask("a", PACKED)
    assert ray.wanted == {"a": "shed"}


async def test_packed_computers_count_where_ray_has_put_them() -> None:
    ray = Ray("shed", "attic")
    ray.rooms.ask("a", PACKED)
    ray.rooms.take_placed("a", "shed")
    ray.rooms.ask("b", PACKED)
    assert ray.wanted == {"a": "attic", "b": "shed"}


async def test_a_ray_that_was_started_again_is_told_the_names_that_it_knows() -> None:
    """It knows computers by their own ids then, and nothing that was spare."""
    ray = Ray("shed")
    ray.run_and_end("a", "shed")
    ray.rooms.ask("b", SMALL)
    ray.run_and_end("c", "shed")
    ray.rooms.forget_ray()
    ray.rooms.ask("d", SMALL)
    ray.rooms.release("b")
    assert ray.said == [("place", "d"), ("release", "b")]


async def test_what_is_spare_on_a_node_whose_ray_was_started_again_is_given_back() -> None:
    ray = Ray("shed", "attic")
    ray.rooms.ask("a", SMALL)
    ray.rooms.take_placed("a", "attic")
    ray.run_and_end("b", "shed")
    ray.rooms.spare("a")
    ray.rooms.leave_node("shed")
    assert ray.said == [("release", "b")]


async def test_nothing_is_given_while_ray_is_away() -> None:
    ray = Ray("shed")
    ray.run_and_end("a", "shed")
    ray.is_ready = False
    ray.rooms.ask("b", SMALL)
    await asyncio.sleep(0)
    assert ray.placed == []


async def test_computers_count_again_only_when_a_ray_that_was_started_again_has_placed_them() -> None:
    """It may place them elsewhere, and a node that looked full would get nothing that is spare."""
    ray = Ray("shed", "attic")
    ray.rooms.ask("a", SMALL)
    ray.rooms.take_placed("a", "shed")
    ray.rooms.forget_ray()
    ray.rooms.release("a")
    ray.run_and_end("b", "shed")
    ray.rooms.ask("c", SMALL)
    assert ray.placed == [("c", "shed")]
    ray.rooms.ask("d", SMALL)
    ray.rooms.take_placed("d", "attic")
    ray.rooms.forget_ray()
    ray.rooms.spare("d")  # nobody knows yet where it is
    ray.rooms.ask("e", SMALL)
    assert ray.placed == [("c", "shed")]
    assert ray.rooms._reserved._cpus.total() == 0
