"""A run of a whole Freehold whose computer is on a node that is killed: it goes on elsewhere, and says so."""

import asyncio

import pytest
from tests.e2e.test_runs import RUNS, finish, spawn
from tests.support.condition import until
from tests.support.fleet import HEAD, START_TIMEOUT, RunningFleet
from tests.support.ports import free_ports
from tests.support.running_freehold import FreeholdOptions, run_freehold

from freehold.errors import FreeholdError

pytestmark = pytest.mark.shared_processes
MANIFEST = """
[slots]
orchestrator = "local"
[agents]
default = "builtin"
[fleet]
enabled = true
address = "{head}"
port = {port}
fixed_ports = false
runs = true
save_every = "1s"
"""
WORK = "cat /workspace/half > /workspace/whole || { echo half > /workspace/half; sleep 1000; }"


async def count_ready(fleet: RunningFleet) -> int:
    """-1 while its head does not answer."""
    try:
        found = await fleet.status_now()
    except FreeholdError:
        return -1
    return sum(node.state == "ready" for node in found.nodes) if found.is_ready else -1


async def test_a_run_whose_node_is_lost_goes_on_from_its_last_files_on_another_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    (port,) = free_ports(1)
    options = FreeholdOptions(agents=("builtin",), manifest=MANIFEST.format(head=HEAD, port=port))
    # The path of a socket is short, and that of a test is not.
    async with run_freehold(tmp_path_factory.mktemp("moved"), options) as freehold:
        fleet = RunningFleet(freehold.home, tmp_path_factory.mktemp("nodes"), port)

        async def is_ready(count: int) -> bool:
            return await count_ready(fleet) == count

        try:
            await until(lambda: is_ready(0), START_TIMEOUT)
            for name in ("attic", "shed"):
                await asyncio.to_thread(fleet.join, name)
            await until(lambda: is_ready(2), START_TIMEOUT)
            await until(freehold.is_connected)
            run = await spawn(freehold, f"RUN {WORK}\nSAY Done.")
            finishing = asyncio.ensure_future(finish(freehold, run["id"]))
            saved = freehold.home.copies / f"run-{run['id']}" / "workspace" / "half"
            await until(lambda: saved.exists() or finishing.done())
            (computer,) = (await freehold.call("GET", "/v1/fleet"))["computers"]
            assert computer["session"] == run["session"]
            fleet.nodes[computer["node"]].kill()
            done = await finishing
            assert (done["state"], done["added"]) == ("done", 2), done
            events = (await freehold.call("GET", f"{RUNS}/{run['id']}/events?limit=200"))["events"]
            prompts = [one["data"]["prompt"]["text"] for one in events if one["kind"] == "turn.started"]
            assert len(prompts) == 2
            assert prompts[1].startswith(f"Freehold: The node {computer['node']} is lost.")
        finally:
            await asyncio.to_thread(fleet.stop)
