"""Which ports Ray may take: those that the owner opens, or any that is free."""

from typing import Any

import pytest

from freehold.fleet import ray_inside

HEAD: dict[str, Any] = {"address": "127.0.0.2", "port": 13227, "folder": "/run/ray/session", "machines": {}, "idle": 0}


@pytest.mark.parametrize(("ports", "first", "last"), [(7812, 7822, 7852), (0, 0, 0)])
def test_workers_of_ray_never_have_the_port_of_its_head(
    monkeypatch: pytest.MonkeyPatch, ports: int, first: int, last: int
) -> None:
    """Ray's own choice for its workers is 10002 to 19999: a head whose port is among them does not start."""
    started: list[list[str]] = []
    monkeypatch.setattr("freehold.fleet.ray_inside.subprocess.Popen", lambda words, **_: started.append(words))
    ray_inside.start_ray({**HEAD, "ports": ports})
    assert {f"--min-worker-port={first}", f"--max-worker-port={last}", "--port=13227"} <= set(started[0])
