"""How files are distributed over the workers of a run: long ones begin first, and those of a group share a worker.

A file that takes minutes and begins last keeps one core waiting. The files of a group share a server that is started once
a worker, such as a fleet.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling  # type: ignore[import-untyped]

TESTS = Path(__file__).parents[1]
CONFORMANCE = "tests/computer/test_backend_conformance.py"
"""Distributed by backend: each has an engine of its own."""
LONG_FILES = (
    "fleet/test_fleet.py",
    "fleet/test_fleet_faults.py",
    "fleet/test_takeover.py",
    "computer/batch/test_over_fleet.py",
    "keeper/test_vm_end.py",
    "images/test_build.py",
    "e2e/test_accessibility.py",
    "e2e/test_agents.py",
    "cli/test_map_prompts.py",
    "computer/test_microvm.py",
    "e2e/atproto/test_sign_in.py",
    "e2e/test_front_door.py",
    "computer/test_backend_conformance.py",
    "fleet/test_moved_run.py",
    "gateway/test_whole_api.py",
    "mesh/test_namespaces.py",
    "security/test_escapes.py",
    "cli/test_chat.py",
    "faults/test_keeper_kills.py",
    "backup/test_commands.py",
    "e2e/test_diff.py",
    "upgrade/test_upgrade.py",
    "upgrade/test_interruption.py",
)
"""Those that take more than about half a minute. Fleets and virtual machines stand apart: two at once are slow."""
WITH_FLEET_OF_ITS_OWN = TESTS / "fleet/test_moved_run.py"
"""The last of its group: two fleets at once are slow."""
GROUPS = {
    "tests/fleet/test_fleet.py": "fleet",
    "tests/fleet/test_fleet_faults.py": "fleet",
    "tests/fleet/test_moved_run.py": "fleet",
    "tests/fleet/test_takeover.py": "fleet",
    "tests/computer/batch/test_over_fleet.py": "fleet",
    f"{CONFORMANCE}[ray]": "fleet",
}


def count_workers() -> int:
    """Half as many again as there are processors: a worker waits for a quarter of its time."""
    return len(os.sched_getaffinity(0)) * 3 // 2


def begin_with_long_files(items: list[pytest.Item]) -> None:
    """The others follow in the order in which they were found."""
    places = {TESTS / name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def find_group(node_id: str) -> str:
    """What runs on one worker together with this test: its file, unless that belongs to a group."""
    file, _, test = node_id.partition("::")
    if file == CONFORMANCE and "[" in test:
        backend = test.partition("[")[2].rstrip("]").partition("-")[0]
        file = f"{file}[{backend}]"
    return GROUPS.get(file, file)


def needs_fleet(item: pytest.Item | None) -> bool:
    return item is not None and find_group(item.nodeid) == "fleet" and item.path != WITH_FLEET_OF_ITS_OWN


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]
    """One unit of work is a group."""

    def _split_scope(self, nodeid: str) -> str:  # the names are those of pytest-xdist
        return find_group(nodeid)


def make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    return GroupScheduling(config, log)
