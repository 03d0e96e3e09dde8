"""Runs of a whole Freehold in a fleet: they wait for room, begin with older states, use keys that are on no node, and go
on when a node is killed. Agents of others run there as well."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.test_runs import RUNS, finish, spawn, write
from tests.egress.proxy_harness import make_authority
from tests.fleet.outside_servers import BASIC, PASSWORD, OutsideServers, outside_servers
from tests.fleet.test_takeover import read_all_of_node
from tests.skills.skill_folders import write_skill
from tests.support.condition import until
from tests.support.fleet import HEAD, START_TIMEOUT, RunningFleet
from tests.support.ports import free_ports
from tests.support.processes import find_descendants
from tests.support.running_freehold import KEY, FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.history.calls import TakeSnapshot
from freehold.keeper.client import call_keeper
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[slots.orchestrator]
mode = "local"
[slots.orchestrator.settings]
max_active = "20"
[agents]
default = "builtin"
[fleet]
enabled = true
address = "{head}"
port = {port}
fixed_ports = false
runs = true
save_every = "1s"
[mcp.notes]
command = "/usr/bin/python3 /workspace/odd_server.py"
tools = ["echo"]
"""
AGENTS = ("builtin", "opencode")
ODD_SERVER = Path(__file__).parents[1] / "mcp" / "odd_server.py"
AT_WORK, AT_ONCE = 20, 5
"""Runs at work when a part is killed, and how many of them begin at a time: each agent needs a processor to start."""
WORK = "cat /workspace/half > /workspace/whole || { echo half > /workspace/half; sleep 1000; }"


async def count_ready(fleet: RunningFleet) -> int:
    """-1 while its head does not answer."""
    try:
        found = await fleet.status_now()
    except FreeholdError:
        return -1
    return sum(node.state == "ready" for node in found.nodes) if found.is_ready else -1


async def _see_a_run_wait_until_it_is_ended(freehold: RunningFreehold) -> None:
    """No machine has joined. The owner sees which session waits, and why."""
    await until(freehold.is_connected)
    run = await spawn(freehold, "SAY Never.")

    async def list_waiting() -> list[tuple[str, str]]:
        rows = (await freehold.call("GET", "/v1/fleet"))["waiting"]
        return [(row["session"], row["reason"]) for row in rows]

    async def is_waiting() -> bool:
        return await list_waiting() == [(run["session"], "No node is connected")]

    await until(is_waiting)
    await freehold.call("POST", f"{RUNS}/{run['id']}/stop")
    done = await finish(freehold, run["id"])
    assert done["state"] == "ended", done
    assert await list_waiting() == []


async def _see_a_run_begin_with_an_older_state(freehold: RunningFreehold) -> None:
    """By the id of an entry, on a node as on this machine."""
    await write(freehold, "older.txt", "at first")
    old = (await asyncio.to_thread(call_keeper, freehold.home, TakeSnapshot())).entry
    await write(freehold, "older.txt", "of the owner")
    run = await spawn(freehold, "RUN cp /workspace/older.txt /workspace/seen.txt\nSAY Done.", folder=".", entry=old)
    done = await finish(freehold, run["id"])
    assert (done["state"], done["entry"], done["added"], done["changed"]) == ("done", old, 1, 0), done
    await freehold.call("POST", f"{RUNS}/{run['id']}/changes", how="merge")
    texts = [freehold.file(name).read_text() for name in ("older.txt", "seen.txt")]
    assert texts == ["of the owner", "at first"]


@dataclass
class HeldRun:
    """A run in the middle of a request of its credential. `saved` is its workspace as it came back last."""

    finishing: "asyncio.Future[dict[str, Any]]"
    id: str
    node: str
    saved: Path

    def read_variables(self) -> dict[str, str]:
        lines = (self.saved / "env.txt").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@asynccontextmanager
async def held_run(story: "FleetStory") -> AsyncIterator[HeldRun]:
    """Uses a model, a credential, an allowed host and a host tool, all by the link. The request is answered at the end."""
    freehold, servers = story.freehold, story.servers
    servers.held.clear()
    servers.release.clear()
    run = await spawn(freehold, servers.prompt)
    finishing = asyncio.ensure_future(finish(freehold, run["id"]))
    saved = freehold.home.copies / f"run-{run['id']}" / "workspace"
    try:
        await until(lambda: (servers.held.is_set() and (saved / "log.txt").exists()) or finishing.done())
        assert not finishing.done(), await freehold.call("GET", f"{RUNS}/{run['id']}/changes")
        (computer,) = (await freehold.call("GET", "/v1/fleet"))["computers"]
        yield HeldRun(finishing, run["id"], computer["node"], saved)
        servers.release.set()
        done = await finishing
        assert done["state"] == "done", done
    finally:
        servers.release.set()
        finishing.cancel()


async def _see_a_run_use_keys(story: "FleetStory") -> None:
    freehold, servers = story.freehold, story.servers
    async with held_run(story) as run:
        pass
    await freehold.call("POST", f"{RUNS}/{run.id}/changes", how="merge")
    texts = {name: freehold.file(f"{name}.txt").read_text() for name in ("allowed", "refused", "held", "log")}
    assert (texts["allowed"], texts["held"]) == ("answer to /allowed", "answer to /api/hold")
    assert "answer" not in texts["refused"]
    assert "  merge  " in texts["log"]
    assert servers.seen == [("/allowed", ""), ("/api/hold", f"Basic {BASIC}")]
    assert {request.key for request in freehold.model.requests} == {KEY}


@dataclass
class FleetStory:
    """A whole Freehold with a fleet, and the servers that its runs use. No machine has joined yet."""

    freehold: RunningFreehold
    fleet: RunningFleet
    servers: OutsideServers

    async def have_nodes(self, count: int) -> None:
        """Those that were killed count no more."""
        running = [one for one in self.fleet.nodes.values() if one.poll() is None]
        for name in [one for one in ("attic", "shed") if one not in self.fleet.nodes][: max(0, count - len(running))]:
            await asyncio.to_thread(self.fleet.join, name, cpus=2 * AT_WORK, memory=f"{2 * AT_WORK}GiB")

        async def are_ready() -> bool:
            return await count_ready(self.fleet) >= count

        await until(are_ready, START_TIMEOUT)
        await until(self.freehold.is_connected)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FleetStory]:
    (port,) = free_ports(1)
    authority = make_authority(tmp_path_factory.mktemp("authority"), "127.0.0.1")
    with outside_servers(authority) as servers:
        options = FreeholdOptions(
            agents=AGENTS,
            manifest=MANIFEST.format(head=HEAD, port=port) + servers.manifest,
            environment={"SSL_CERT_FILE": str(authority.ca_file)},
        )
        # The path of a socket is short, and that of a test is not.
        async with run_freehold(tmp_path_factory.mktemp("moved"), options) as freehold:
            fleet = RunningFleet(freehold.home, tmp_path_factory.mktemp("nodes"), port)

            async def answers() -> bool:
                return await count_ready(fleet) == 0

            try:
                await until(answers, START_TIMEOUT)
                await asyncio.to_thread(Vault(freehold.home.vault).set, "code", PASSWORD)
                script = {"scripts/run.sh": b"#!/bin/sh\necho the script ran\n"}
                skill = write_skill(tmp_path_factory.mktemp("skills") / "pink-charts", "pink-charts", script)
                SkillLibrary(freehold.home).add(read_source(str(skill)))
                yield FleetStory(freehold, fleet, servers)
            finally:
                await asyncio.to_thread(fleet.stop)


async def test_a_run_whose_node_is_lost_goes_on_from_its_last_files_on_another_one(story: FleetStory) -> None:
    freehold, fleet = story.freehold, story.fleet
    await _see_a_run_wait_until_it_is_ended(freehold)
    await story.have_nodes(2)
    await _see_a_run_begin_with_an_older_state(freehold)
    await _see_a_run_use_keys(story)
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads the memory of a node")
async def test_root_of_a_node_finds_none_of_the_keys_that_a_run_on_it_uses(story: FleetStory) -> None:
    """In no file and in the memory of no process of the node, while the request with the secret is under way."""
    await story.have_nodes(1)
    async with held_run(story) as run:
        seen = await asyncio.to_thread(read_all_of_node, story.fleet, run.node)
        assert run.read_variables()["CODE_TOKEN"].encode() in seen, "the search does not find what is there"
        head_key = json.loads((story.freehold.home.root / "fleet" / "head.json").read_text())["key"].splitlines()[1]
        secrets = {"model": KEY, "password": PASSWORD, "as it is sent": BASIC, "head": head_key}
        assert [name for name, secret in secrets.items() if secret.encode() in seen] == []
    assert ("/api/hold", f"Basic {BASIC}") in story.servers.seen


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_on_a_node_loads_a_skill_calls_a_server_and_writes_a_file(story: FleetStory, agent: str) -> None:
    """The agent with its Node.js, the owner's skills and a server of tools that runs beside it are all on the node."""
    freehold = story.freehold
    await story.have_nodes(1)
    await write(freehold, "odd_server.py", ODD_SERVER.read_text())
    prompt = f"""CALL skill {{"name": "pink-charts"}}
RUN sh ~/.agents/skills/pink-charts/scripts/run.sh > /workspace/{agent}-skill.txt
CALL notes__echo {{"text": "from the server of {agent}"}}
WRITE /workspace/{agent}-made.txt made-on-a-node
SAY All four are done."""
    run = await spawn(freehold, prompt, agent=agent, folder=".")
    finishing = asyncio.ensure_future(finish(freehold, run["id"]))

    async def is_on_node() -> bool:
        found = (await freehold.call("GET", "/v1/fleet"))["computers"]
        return finishing.done() or any(one["session"] == run["session"] for one in found)

    await until(is_on_node)
    assert not finishing.done(), finishing.result()
    done = await finishing
    events = (await freehold.call("GET", f"{RUNS}/{run['id']}/events?limit=200"))["events"]
    assert (done["state"], done["agent"]) == ("done", agent), done
    assert f"from the server of {agent}" in str([one["data"] for one in events if one["kind"].startswith("tool")])
    await freehold.call("POST", f"{RUNS}/{run['id']}/changes", how="merge")
    assert freehold.file(f"{agent}-skill.txt").read_text() == "the script ran\n"
    assert freehold.file(f"{agent}-made.txt").read_text().strip() == "made-on-a-node"


async def begin_work(story: FleetStory) -> list[str]:
    """So many runs that do not end by themselves. Each writes a line when it begins, and that has come back."""
    freehold, runs = story.freehold, list[str]()

    async def are_at_work() -> bool:
        for asked in await freehold.call("GET", "/v1/approvals"):
            await freehold.http.post(f"/v1/approvals/{asked['id']}", json={"answer": "once"})
        return all((freehold.home.copies / f"run-{run}" / "workspace" / "began").exists() for run in runs)

    while len(runs) < AT_WORK:
        prompt = "RUN echo began >> /workspace/began; sleep 1000\nSAY Done."
        begun = await asyncio.gather(*(spawn(freehold, prompt) for _ in range(AT_ONCE)))
        runs += [run["id"] for run in begun]
        await until(are_at_work)
    return runs


async def see_all_lost_once(story: FleetStory, runs: list[str]) -> None:
    """With the files that had come back. Nothing of them is on a node any more."""
    freehold = story.freehold
    for id in runs:
        run = await finish(freehold, id)
        assert (run["state"], run["lost"], run["added"]) == ("ended", True, 1), run
        (change,) = (await freehold.call("GET", f"{RUNS}/{id}/changes"))["files"]
        assert (change["path"], change["diff"].count("+began")) == ("began", 1)

    async def is_empty() -> bool:
        nodes = [one for one in story.fleet.nodes.values() if one.poll() is None]
        left = [command for node in nodes for command in find_descendants(node.pid).values()]
        shown = (await freehold.call("GET", "/v1/fleet"))["computer_count"]
        return shown == 0 and not any(command.split() == ["sleep", "1000"] for command in left)

    await until(is_empty)


async def test_twenty_runs_at_work_are_told_lost_once_when_the_gateway_is_killed_and_when_the_keeper_is(
    story: FleetStory,
) -> None:
    freehold = story.freehold
    await story.have_nodes(1)
    runs = await begin_work(story)
    await freehold.kill_gateway()
    await see_all_lost_once(story, runs)
    runs = await begin_work(story)
    freehold.keeper.kill()
    with freehold.harness.keeper() as again:
        again.next("ready")
        await see_all_lost_once(story, runs)
        assert again.stop() == 0
