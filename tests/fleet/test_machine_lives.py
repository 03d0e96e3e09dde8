"""A machine that is started, lost, let go twice or let go while it starts: none is forgotten, and the head goes on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.faults.test_keeper_disk import needs_root, small_disk
from tests.fleet.test_machine_limits import Provider, running
from tests.support.condition import until
from tests.support.full_disk import fill_disk

from freehold.fleet import autoscaler as autoscaler_module
from freehold.fleet.autoscaler import Autoscaler
from freehold.fleet.computer_lease import ComputerLease
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.head import FleetHead

LAUNCH = {"do": "launch", "kind": "small", "count": 1, "request": "r"}


def let_join(head: FleetHead, name: str) -> None:
    """As a machine does with its code."""
    head.known[name] = KnownNode(name, "127.0.0.9", 7870, head.known["attic"].certificate, "", {})


async def wait_listed(autoscaler: Autoscaler, names: list[str]) -> None:
    """Ray lists machines every two seconds."""

    def is_so() -> bool:
        return [one["name"] for one in autoscaler.answer({"do": "list"})["machines"]] == names

    await until(is_so)


def keep(tmp_path: Path, *machines: dict[str, Any]) -> None:
    """What an earlier head has left."""
    (tmp_path / "fleet").mkdir(mode=0o700)
    (tmp_path / "fleet" / "machines.json").write_text(json.dumps(machines))


async def begin_start(autoscaler: Autoscaler, provider: Provider) -> str:
    """A machine whose start command runs."""
    (provider.folder / "wait-start").touch()
    assert autoscaler.answer(LAUNCH) == {}
    (name,) = autoscaler.machines
    await until(provider.list_begun)
    return name


async def test_one_that_is_let_go_while_its_start_command_runs_is_ended_after_it(tmp_path: Path) -> None:
    """Side by side, the stop command could find nothing to end, and the start command then make a machine."""
    async with running(tmp_path) as (autoscaler, provider, _):
        name = await begin_start(autoscaler, provider)
        assert autoscaler.answer({"do": "terminate", "name": name}) == {}
        assert provider.revoked == [name]
        assert autoscaler.answer({"do": "terminate", "name": name}) == {}
        for _round in range(20):
            await asyncio.sleep(0)
        assert provider.list_asked() == []
        (provider.folder / "wait-start").unlink()
        await wait_listed(autoscaler, [])
        assert provider.list_asked() == [f"start small {name}", f"stop small {name}"]


async def test_one_that_joins_after_it_was_let_go_is_ended_and_the_head_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as (autoscaler, provider, head):
        name = await begin_start(autoscaler, provider)
        autoscaler.answer({"do": "terminate", "name": name})
        let_join(head.head, name)
        (provider.folder / "wait-start").unlink()
        await wait_listed(autoscaler, [])
        assert name not in head.head.known
        await begin_start(autoscaler, provider)
        (provider.folder / "wait-start").unlink()


async def test_one_that_ray_and_the_owner_let_go_at_once_is_ended_once(tmp_path: Path) -> None:
    keep(tmp_path, {"name": "shed", "kind": "small", "request": "", "state": "joined", "trouble": ""})
    async with running(tmp_path) as (autoscaler, provider, head):
        assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {}
        head.head.remove_node("shed")
        autoscaler._look()
        assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {}
        await wait_listed(autoscaler, [])
        assert provider.list_asked() == ["stop small shed"]


async def test_no_computer_comes_between_the_look_at_a_machine_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has got its room just then keeps the machine until it ends."""
    monkeypatch.setattr(autoscaler_module, "LOOK_PAUSE", 0.01)
    keep(tmp_path, {"name": "shed", "kind": "small", "request": "", "state": "joined", "trouble": ""})
    async with running(tmp_path) as (autoscaler, provider, head):
        assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {}
        assert head.head.known["shed"].is_draining
        lease = head.add_computer("late")
        looks: list[str] = []
        list_computers = head.head.list_computers

        def look(name: str) -> list[ComputerLease]:
            looks.append(name)
            return list_computers(name)

        monkeypatch.setattr(head.head, "list_computers", look)
        await until(lambda: len(looks) == 3)
        assert provider.list_asked() == []
        head.head.forget(lease)
        await wait_listed(autoscaler, [])
        assert provider.list_asked() == ["stop small shed"]


async def test_one_that_joined_while_there_was_no_head_is_a_joined_machine(tmp_path: Path) -> None:
    keep(tmp_path, {"name": "shed", "kind": "small", "request": "", "state": "starting", "trouble": ""})
    async with running(tmp_path) as (autoscaler, provider, head):
        await until(lambda: autoscaler.machines["shed"].state == "joined")
        head.head.remove_node("shed")
        await wait_listed(autoscaler, [])
        assert provider.list_asked() == ["stop small shed"]


async def test_a_kind_that_cannot_be_started_does_not_hold_up_another_one(tmp_path: Path) -> None:
    async with running(tmp_path) as (autoscaler, _, head):
        (tmp_path / "fail-big").touch()
        lease = head.add_computer("wants room", waits=True)
        assert autoscaler.answer({**LAUNCH, "kind": "big"}) == {}
        await until(lambda: "no money" in autoscaler.trouble)
        assert "no money" in autoscaler.answer({**LAUNCH, "kind": "big"})["error"]
        assert autoscaler.answer(LAUNCH) == {}
        (name,) = [one.name for one in autoscaler.machines.values() if one.kind == "small"]
        let_join(head.head, name)
        await until(lambda: autoscaler.machines[name].state == "joined")
        assert "no money" in autoscaler.trouble
        head.head.forget(lease)
        await until(lambda: autoscaler.trouble == "")  # nobody waits for it any more


@needs_root
async def test_a_full_disk_starts_no_machine_says_so_and_ends_nothing(tmp_path: Path) -> None:
    """One that the next head would not know could cost money for ever."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        async with running(disk) as (autoscaler, provider, head):
            lease = head.add_computer("wants room", waits=True)
            ballast = fill_disk(disk, 0)
            for _try in range(3):
                assert "No space left" in autoscaler.answer({**LAUNCH, "count": 2})["error"]
            assert not autoscaler.machines
            assert "No space left" in autoscaler.trouble
            ballast.unlink()
            assert not list((disk / "fleet").glob(".machines*")), "drafts are left"
            head.head.forget(lease)
            await until(lambda: autoscaler.trouble == "")
            autoscaler._troubles["small"].refused_until = 0
            assert autoscaler.answer(LAUNCH) == {}
            await until(provider.list_asked)


@needs_root
async def test_a_machine_that_is_let_go_on_a_full_disk_is_ended_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        keep(disk, {"name": "shed", "kind": "small", "request": "", "state": "joined", "trouble": ""})
        async with running(disk) as (autoscaler, provider, head):
            ballast = fill_disk(disk, 0)
            assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {}
            assert autoscaler.machines["shed"].state == "stopping"
            await until(lambda: autoscaler.machines["shed"].trouble)
            ballast.unlink()
            await wait_listed(autoscaler, [])
            assert "stop small shed" in provider.list_asked()
            assert "shed" not in head.folder.read_nodes()
