"""A fleet on three real Ray nodes of this machine: where computers are, what they have, and what happens when parts fail."""

import asyncio
import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fleet.fleet_work import SMALL, remote
from tests.support.condition import until
from tests.support.fleet import RunningFleet

from freehold.cli.doctor import command as doctor
from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB
from freehold.errors import FreeholdError
from freehold.fleet import node_examination
from freehold.history import History, HistorySettings

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "computer.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", GUIDE, re.DOTALL)
pytestmark = pytest.mark.shared_processes
"""Ray and nodes that were killed are started again below this process."""


@pytest.mark.parametrize(("block", "output"), BLOCKS, ids=range(len(BLOCKS)))
def test_the_guide_of_the_computer_is_true_on_a_node(
    fleet: RunningFleet, block: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same programs print the same. Only the default backend is another."""
    module = sys.modules["freehold.computer.library.launch"]
    monkeypatch.setattr(module, "find_backend", lambda: fleet.backend())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "guide", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output


async def test_computers_are_spread_over_the_nodes_and_the_owner_sees_where(fleet: RunningFleet) -> None:
    """Ray looks at how full the nodes are, which it learns a moment later: of eight computers not all are on one."""
    async with contextlib.AsyncExitStack() as stack:
        computers = [
            await stack.enter_async_context(Computer.start(on=fleet.place, limits=SMALL, hostname=f"number-{number}"))
            for number in range(8)
        ]
        status = await fleet.status_now()
        assert {remote(one).node for one in computers} == {"node-0", "node-1"}
        places = {f"number-{number}": remote(one).node for number, one in enumerate(computers)}
        assert {row.name: row.node for row in status.computers} == places
        assert sum(node.computers for node in status.nodes) == 8


async def test_packed_computers_fill_one_node_after_the_other(fleet: RunningFleet) -> None:
    """Ray alone would spread them: each is a placement group of its own."""

    async def is_empty() -> bool:
        found = await fleet.status_now()
        return not found.computers and all(one.free_cpus == one.cpus for one in found.nodes)

    await until(is_empty)
    packed, most = f"{fleet.place}?strategy=pack", Limits(cpus=3.5, memory=256 * MIB)
    async with contextlib.AsyncExitStack() as stack:
        where = []
        for _ in range(2):
            where.append(remote(await stack.enter_async_context(Computer.start(on=packed, limits=SMALL))).node)
        starting = (stack.enter_async_context(Computer.start(on=packed, limits=SMALL)) for _ in range(6))
        where += [remote(one).node for one in await asyncio.gather(*starting)]
        assert len(set(where)) == 1
        large = await stack.enter_async_context(Computer.start(on=packed, limits=most))
        assert remote(large).node not in where


async def test_a_pool_on_the_fleet_gives_a_new_computer_to_each_job(fleet: RunningFleet) -> None:
    async with Computer.pool(4, on=fleet.place, limits=SMALL) as pool:
        await pool.wait_ready()
        for _ in range(3):
            async with pool.checkout() as computer:
                assert (await computer.run("ls; echo x > used")).stdout == b""


async def test_files_come_back_at_intervals_while_a_computer_works(fleet: RunningFleet, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("from here")
    async with Computer.start(tmp_path, on=fleet.place, limits=SMALL) as computer:
        await computer.run("cat given > copy; mkdir -p deep; echo made > deep/file; rm given")
        await until(lambda: (tmp_path / "deep" / "file").exists() and not (tmp_path / "given").exists())
        assert (tmp_path / "copy").read_text() == "from here"


async def test_a_computer_gets_an_older_state_of_history_and_its_changes_come_back_as_a_change_set(
    fleet: RunningFleet, tmp_path: Path
) -> None:
    """As a run does. What came later on the side of the owner stays, and what was deleted stays deleted. It can be undone."""
    site = tmp_path / "workspace" / "site"
    site.mkdir(parents=True)
    with History(tmp_path / "history", {"workspace": site.parent}, HistorySettings(quiet=0)) as history:
        for name in ("kept", "deleted"):
            (site / name).write_text(f"{name} at first")
        old = history.snapshot().entry
        (site / "kept").write_text("of the owner")
        (site / "deleted").unlink()
        history.snapshot()
        history.check_out("run-a", "workspace/site", old)
        copy = tmp_path / "copies" / "run-a" / "workspace"
        async with Computer.start(copy, on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("cat site/kept site/deleted")).stdout == b"kept at firstdeleted at first"
            await computer.run("echo found > site/answer")
        history.collect_copy("run-a")
        changes = history.read_change_set("run-a")[1]
        assert [(one.path, one.word) for one in changes] == [(b"workspace/site/answer", "added")]
        assert history.merge("run-a") is not None
        merged = {path.name: path.read_text() for path in site.iterdir()}
        history.undo()
    assert merged == {"kept": "of the owner", "answer": "found\n"}
    assert {path.name: path.read_text() for path in site.iterdir()} == {"kept": "of the owner"}


async def test_a_full_fleet_lets_computers_wait_by_priority_and_says_why(fleet: RunningFleet) -> None:
    whole = Limits(cpus=4, memory=256 * MIB)
    order: list[str] = []

    async def use(name: str, wishes: str) -> None:
        async with Computer.start(on=fleet.place + wishes, limits=whole):
            order.append(name)

    async with Computer.start(on=fleet.place, limits=whole), Computer.start(on=fleet.place, limits=whole) as last:
        low = asyncio.create_task(use("low", ""))
        await until(lambda: _count_waiting(fleet, 1))
        high = asyncio.create_task(use("high", "?priority=9"))
        await until(lambda: _count_waiting(fleet, 2))
        waits = (await fleet.status_now()).waiting
        assert [wait.priority for wait in waits] == [9, 0]
        assert waits[0].reason.startswith("All nodes are full: 4 processors")
        await last.close()
        await asyncio.gather(low, high)
    assert order == ["high", "low"]


async def _count_waiting(fleet: RunningFleet, count: int) -> bool:
    return len((await fleet.status_now()).waiting) == count


async def test_one_that_wants_a_gpu_waits_for_a_node_that_has_one(fleet: RunningFleet) -> None:
    """Ray gives it the node with the card. This machine has no such card, and that is what the node says then."""
    starting = asyncio.ensure_future(Computer.start(on=f"{fleet.place}?gpus=1", limits=SMALL)._open())
    try:
        await until(lambda: _count_waiting(fleet, 1))
        reason = (await fleet.status_now()).waiting[0].reason
        assert reason == "No node has 0.25 processors, 1 GPU and 256 MiB of memory"
        await asyncio.to_thread(fleet.join, "with-card", words=("--card", "63"))
        with pytest.raises(FreeholdError, match="There is no device /dev/nvidia63"):
            await starting
        assert not (await fleet.status_now()).waiting

        async def is_seen() -> bool:
            gpus = {node.name: node.gpus for node in (await fleet.status_now()).nodes}
            return gpus == {"node-0": 0, "node-1": 0, "with-card": 1}

        await until(is_seen)
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        if "with-card" in fleet.nodes:
            await _remove_node(fleet, "with-card")


async def _remove_node(fleet: RunningFleet, name: str) -> None:
    node = fleet.nodes.pop(name)
    node.terminate()
    await asyncio.to_thread(node.wait)
    await fleet.ask_now("remove", node=name)


async def test_labels_choose_the_node_and_one_that_no_node_has_is_named(fleet: RunningFleet) -> None:
    async with Computer.start(on=f"{fleet.place}?arch={os.uname().machine}", limits=SMALL) as computer:
        assert (await computer.run("true")).ok
    waiting = asyncio.ensure_future(Computer.start(on=f"{fleet.place}?region=moon", limits=SMALL)._open())
    await until(lambda: _count_waiting(fleet, 1))
    assert (await fleet.status_now()).waiting[0].reason == "No node with region=moon is connected"
    waiting.cancel()
    await until(lambda: _count_waiting(fleet, 0))


async def test_a_draining_node_gets_no_more_computers_and_a_busy_one_is_not_removed(fleet: RunningFleet) -> None:
    async with Computer.start(on=fleet.place, limits=SMALL) as computer:
        busy = remote(computer).node
        with pytest.raises(FreeholdError, match="1 computers are on"):
            await fleet.ask_now("remove", node=busy)
        assert (await fleet.ask_now("drain", node=busy))["computers"] == 1
        async with Computer.start(on=fleet.place, limits=SMALL) as other:
            assert remote(other).node != busy
        assert (await computer.run("echo still here")).stdout == b"still here\n"
        await fleet.ask_now("drain", node=busy, off=True)
    with pytest.raises(FreeholdError, match="no node 'nowhere'"):
        await fleet.ask_now("drain", node="nowhere")


def test_the_doctor_tries_every_node_and_says_what_is_wrong_with_one(fleet: RunningFleet) -> None:
    def examine() -> tuple[int, list[dict[str, Any]]]:
        done = CliRunner().invoke(doctor, ["--fleet", "--quick", "--json", "--home", str(fleet.home.root)])
        return done.exit_code, json.loads(done.stdout)

    code, nodes = examine()
    assert [node["node"] for node in nodes] == ["node-0", "node-1"]
    assert all(len(node["attempts"]) > 20 and node["trouble"] == "" for node in nodes)
    assert {one["outcome"] for node in nodes for one in node["attempts"]} == {"refused"}
    assert code == 0


def test_a_node_cannot_write_to_the_terminal_of_who_looks_at_it(
    monkeypatch: pytest.MonkeyPatch, fleet: RunningFleet
) -> None:
    """One that was taken over answers with control characters, and another with nothing that is known."""
    status = fleet.ask("status")
    lies = {
        "node-0": {"attempts": [{"name": "x\x1b[2J", "claim": "", "outcome": "refused", "seen": "\x1b]0;owned\x07"}]},
        "node-1": {"attempts": "all refused"},
    }

    async def answer(_path: Path, do: str, **more: Any) -> Any:
        return status if do == "status" else lies[more["node"]]

    monkeypatch.setattr(node_examination, "ask_fleet", answer)
    done = CliRunner().invoke(doctor, ["--fleet", "--home", str(fleet.home.root)])
    assert "\x1b" not in done.stdout
    assert "node-1: Its answer is not a list of attempts" in done.stdout
    assert done.exit_code == 1
