"""The thread that asks Ray whether there is room: at once when somebody waits, and not at all while nobody does."""

import queue
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from freehold.fleet import ray_inside

Said = queue.SimpleQueue[dict[str, Any]]
REQUEST = {"cpus": 1, "memory": 1, "gpus": 0, "labels": {}, "not_on": [], "on": "", "strategy": "SPREAD"}


class FakeRay:
    """Gives room after `refusals` questions."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.questions = 0

    def placement_group(self, *_: object, **__: object) -> object:
        return object()

    def placement_group_table(self, _: object) -> dict[str, Any]:
        self.questions += 1
        state = "CREATED" if self.questions > self.refusals else "PENDING"
        return {"state": state, "bundles_to_node_id": {0: "n"}}

    def remove_placement_group(self, _: object) -> None:
        return

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "n", "Labels": {"freehold-node": "shed"}}]


def make_groups(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> tuple[ray_inside.Groups, Said]:
    said: Said = queue.SimpleQueue()
    monkeypatch.setattr(ray_inside, "say", said.put)
    monkeypatch.setattr(ray_inside, "importlib", SimpleNamespace(import_module=lambda _: ray))
    groups = ray_inside.Groups(ray)
    threading.Thread(target=groups.watch, daemon=True).start()
    return groups, said


def place(groups: ray_inside.Groups, id: str, number: int) -> None:
    groups.place({"id": id, "number": number, **REQUEST})


def test_each_request_is_answered_and_ray_is_asked_only_while_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(refusals=3)
    groups, said = make_groups(monkeypatch, ray)
    place(groups, "a", 1)
    assert said.get(timeout=20) == {"placed": "a", "number": 1, "node": "shed"}
    assert ray.questions == 4
    place(groups, "b", 2)
    assert said.get(timeout=20) == {"placed": "b", "number": 2, "node": "shed"}
    assert ray.questions == 5


def test_a_request_that_is_withdrawn_is_not_answered_and_keeps_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(refusals=10**9)
    groups, said = make_groups(monkeypatch, ray)
    place(groups, "a", 1)
    groups.release("a")
    ray.refusals = 0
    place(groups, "b", 2)
    assert said.get(timeout=20)["placed"] == "b"
    assert said.empty()
