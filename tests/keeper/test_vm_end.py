"""A whole Freehold whose computer is a virtual machine: it sleeps on disk, and comes back after its processes were killed."""

import json
import os
import signal
from pathlib import Path

from tests.computer.virtual_machines import VM_SYSTEM, micro_vm, skip_unless_it_can_save
from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness
from tests.support.processes import find_descendants

from freehold.computer.microvm.requirements import SYSTEM_VARIABLE

MANIFEST = """
[computer]
backend = "microvm"
sleep_after = "2s"

[computer.limits]
memory = "256 MiB"
"""
BOOT_DEADLINE = 240.0


def find_vm_processes(keeper: int) -> dict[str, int]:
    """The pids of QEMU and of the program that shares the workspace; empty while the machine is written to disk."""
    found: dict[str, int] = {}
    for pid, command in find_descendants(keeper).items():
        if "-machine q35" in command:
            found["QEMU"] = pid
        elif "virtiofsd" in command and "--cache=auto" in command:
            found["virtiofsd"] = pid
    return found


def list_sleeps(harness: FreeholdHarness) -> list[tuple[str, int]]:
    """How it went to sleep each time, and the memory that this saved, as the timeline has it."""
    lines = harness.run("timeline", "--kind", "computer.slept", "--json", check=True).stdout.splitlines()
    return [(event["data"]["how"], event["data"]["given_back"]) for event in map(json.loads, lines)]


def test_a_freehold_comes_back_after_its_virtual_machine_was_killed(tmp_path: Path) -> None:
    """First asleep on disk, which is told with the memory that it saves, then without QEMU, then without virtiofsd: each time the files are there."""
    with micro_vm():
        skip_unless_it_can_save()
    harness = FreeholdHarness(tmp_path, **{SYSTEM_VARIABLE: str(VM_SYSTEM)})
    harness.home.root.mkdir()
    harness.home.manifest.write_text(MANIFEST)
    with harness.keeper() as keeper:
        keeper.next("ready")
        harness.run("run", "--", "sh", "-c", "echo before > file", check=True)

        def is_only_on_disk() -> bool:
            sleep = harness.status().sleep
            return sleep is not None and sleep.asleep and not find_vm_processes(keeper.process.pid)

        wait_until(is_only_on_disk, BOOT_DEADLINE)
        given_back = json.loads(harness.run("status", "--json").stdout)["sleep"]["given_back"]
        assert given_back > 1 << 20, "all memory of a machine that is written to disk"
        wait_until(lambda: ("written to disk", given_back) in list_sleeps(harness))
        assert harness.run("run", "--", "cat", "file", check=True).stdout == "before\n"
        for victim in ("QEMU", "virtiofsd"):
            starts = harness.programs()["computer"].starts

            def kill_one(name: str = victim) -> bool:
                """Wake it, and kill before it sleeps again."""
                harness.run("run", "--", "true")
                pid = find_vm_processes(keeper.process.pid).get(name)
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                return pid is not None

            wait_until(kill_one, BOOT_DEADLINE)

            def came_back(before: int = starts) -> bool:
                program = harness.programs()["computer"]
                return program.starts > before and harness.run("run", "--", "cat", "file").stdout == "before\n"

            wait_until(came_back, BOOT_DEADLINE)
        assert keeper.stop() == 0
    assert (harness.home.workspace / "file").read_text() == "before\n"
