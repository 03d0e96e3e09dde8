"""Who gets room first, who has to wait, and what they are told."""

from freehold.fleet.placer import NodeRoom, RoomRequest
from freehold.fleet.room_queue import WINDOW, RoomQueue, RoomWish

SMALL = RoomRequest(1, 1024**2)


class Ray:
    """Remembers what it was asked."""

    def __init__(self, quota: int = 0) -> None:
        self.asked: dict[str, RoomRequest] = {}
        self.blocked: set[str] = set()
        self.queue = RoomQueue(self.asked.__setitem__, self.withdraw, quota, lambda: self.blocked)

    def withdraw(self, id: str) -> None:
        self.asked.pop(id, None)

    def list_avoided(self, id: str) -> list[str]:
        return list(self.asked[id].not_on)

    def explain(self, wish: RoomWish, nodes: dict[str, NodeRoom], labels: dict[str, dict[str, str]]) -> str:
        return self.queue.explain_all([wish], nodes, labels)[0]

    def add(self, id: str, priority: int = 0, who: str = "owner") -> None:
        self.queue.add(id, SMALL, priority, who, 0.0)


def test_the_first_to_come_is_asked_for_first_and_no_more_than_a_few_at_a_time() -> None:
    ray = Ray()
    for number in range(WINDOW + 3):
        ray.add(f"{number:02}")
    assert list(ray.asked) == [f"{number:02}" for number in range(WINDOW)]
    ray.queue.settle("00")
    assert f"{WINDOW:02}" in ray.asked


def test_a_higher_priority_takes_the_turn_of_those_without_room() -> None:
    ray = Ray()
    ray.add("low")
    ray.add("high", 5)
    assert list(ray.asked) == ["high", "low"]
    assert [wish.id for wish in ray.queue] == ["high", "low"]


def test_a_session_gets_its_share_and_not_more() -> None:
    ray = Ray(quota=2)
    for number in range(4):
        ray.add(f"a{number}", who="session:a")
    ray.add("b", who="session:b")
    assert set(ray.asked) == {"a0", "a1", "b"}
    ray.queue.settle("a0")
    ray.queue.settle("a1")
    wish = next(wish for wish in ray.queue if wish.id == "a2")
    assert "session:a has 2 computers already" in ray.explain(wish, {}, {})
    ray.queue.free("a0")
    assert "a2" in ray.asked
    assert "a3" not in ray.asked


def test_the_owner_has_no_share() -> None:
    ray = Ray(quota=2)
    for number in range(4):
        ray.add(f"{number}")
        ray.queue.settle(f"{number}")
    wish = ray.queue.add("last", SMALL, 0, "owner", 0.0)
    assert "last" in ray.asked
    assert ray.explain(wish, {}, {}) == "No node is connected"


def test_a_node_that_cannot_be_used_is_not_asked_for_again() -> None:
    ray = Ray()
    ray.blocked.add("draining")
    ray.add("one")
    assert ray.list_avoided("one") == ["draining"]
    ray.queue.refuse("one", "odd")
    assert ray.list_avoided("one") == ["draining", "odd"]


def test_who_waits_is_told_why() -> None:
    ray = Ray()
    wish = ray.queue.add("one", RoomRequest(4, 2**30, {"arch": "arm"}), 0, "owner", 0.0)
    full = {"n": NodeRoom(4, 2**31, 0, 0)}
    assert ray.explain(wish, full, {"n": {"arch": "x86"}}) == "No node with arch=arm is connected"
    assert ray.explain(wish, full, {"n": {"arch": "arm"}}).startswith("All nodes are full: 4 processors")
    small = {"n": NodeRoom(2, 2**31, 2, 2**31)}
    assert ray.explain(wish, small, {"n": {"arch": "arm"}}) == "No node has 4 processors and 1024 MiB of memory"


def test_one_that_wants_gpus_is_told_when_no_node_has_as_many() -> None:
    ray = Ray()
    wish = ray.queue.add("one", RoomRequest(1, 2**20, gpus=2), 0, "owner", 0.0)
    one_card = {"n": NodeRoom(4, 2**31, 4, 2**31, gpus=1, free_gpus=1)}
    assert ray.explain(wish, one_card, {"n": {}}) == "No node has 1 processors, 2 GPUs and 1 MiB of memory"


def test_who_leaves_the_queue_makes_place_for_the_next_in_their_order() -> None:
    ray = Ray()
    for number in range(WINDOW + 2):
        ray.add(f"{number:02}", priority=number % 3)
    order = [wish.id for wish in ray.queue]
    assert order == sorted(order, key=lambda id: (-(int(id) % 3), int(id)))
    ray.queue.free(order[0])
    assert [wish.id for wish in ray.queue] == order[1:]
    assert set(ray.asked) == set(order[1 : WINDOW + 1])


def test_room_for_one_whose_turn_was_taken_meanwhile_is_not_used() -> None:
    """Ray has named a node for it, and a higher priority came first: what it named is given away again."""
    ray = Ray()
    for number in range(WINDOW):
        ray.add(f"{number:02}")
    ray.add("high", 5)
    last = f"{WINDOW - 1:02}"
    assert last not in ray.asked
    ray.queue.refuse(last, "shed")
    ray.queue.settle("high")
    assert ray.list_avoided(last) == []
