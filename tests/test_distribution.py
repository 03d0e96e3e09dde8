"""Files that take long begin first and keep the order of their tests; those of a group run on one worker."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.distribution import (
    CONFORMANCE,
    GROUPS,
    LONG_FILES,
    TESTS,
    begin_with_long_files,
    count_workers,
    find_group,
)


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (2, 3), (8, 12)])
def test_there_are_more_workers_than_processors(processors: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(processors)))
    assert count_workers() == workers


def test_long_files_come_first_and_every_other_stays_where_it_was() -> None:
    names = ["agents/a.py", LONG_FILES[1], LONG_FILES[1], "web/b.py", LONG_FILES[0], "agents/a.py"]
    items: list[Any] = [SimpleNamespace(path=TESTS / name, number=number) for number, name in enumerate(names)]
    begin_with_long_files(items)
    assert [item.number for item in items] == [4, 1, 2, 0, 3, 5]


def test_every_named_file_exists() -> None:
    grouped = [name.removeprefix("tests/").partition("[")[0] for name in GROUPS]
    assert [name for name in (*LONG_FILES, *grouped) if not (TESTS / name).is_file()] == []


def test_the_tests_of_a_backend_run_together_and_those_of_a_fleet_with_its_other_files() -> None:
    assert find_group(f"{CONFORMANCE}::test_it_starts[docker-0.04]") == f"{CONFORMANCE}[docker]"
    assert find_group(f"{CONFORMANCE}::test_it_starts[docker]") == f"{CONFORMANCE}[docker]"
    assert find_group(f"{CONFORMANCE}::test_it_starts[ray]") == find_group("tests/fleet/test_takeover.py::test_x[a-b]")
    assert find_group("tests/agents/test_a.py::test_b[c]") == "tests/agents/test_a.py"
