"""What `bench/load` says about a soak: what levels off passes, what grows without end does not."""

from collections.abc import Callable

import pytest
from bench.load import Sample, judge_soak


def soak(name: str, size: Callable[[int], float]) -> list[Sample]:
    return [Sample(turn, {name: int(size(turn))}) for turn in range(0, 900, 12)]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    ("name", "size", "met"),
    [
        ("memory of keeper", lambda turn: 40e6 + 2000 * turn, False),
        ("memory of guest", lambda turn: 40e6 + 2000 * min(turn, 500), True),
        ("memory of guest", lambda turn: 40e6 + (3e6 if turn > 700 else 0), True),
        ("open files of keeper", lambda turn: 40 + turn / 20, False),
        ("open files of keeper", lambda turn: 40 + turn % 5, True),
        ("vault/forgotten.db", lambda turn: 4096 + 1500 * turn, False),
        ("timeline.db", lambda turn: 4096 + 2300 * turn, True),
        ("timeline.db-wal", lambda turn: 4096 + 9000 * turn, False),
        ("agent 77", lambda turn: 9e6 + 500 * turn, True),
        ("agent 77", lambda turn: 9e6 + 5000 * turn, False),
    ],
)
def test_only_what_levels_off_or_grows_by_a_known_size_passes(
    name: str, size: Callable[[int], float], met: bool, quick: bool
) -> None:
    figures = judge_soak(soak(name, size), quick=quick)
    assert all(figure.met for figure in figures) is met
    assert figures or met


def test_a_cache_that_still_fills_passes_a_short_soak_only() -> None:
    filling = soak("memory of gateway", lambda turn: 80e6 - 4e6 * 0.997**turn)
    assert [figure.met for figure in judge_soak(filling, quick=True)] == [True]
    assert [figure.met for figure in judge_soak(filling, quick=False)] == [False]
