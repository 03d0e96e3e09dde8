"""Nodes that answer and cannot start a computer: another one is used where there is one, and its owner is told why."""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.fleet_work import SMALL, remote
from tests.fleet.one_node import OneNode, one_node
from tests.fleet.test_hostile_node import HELLO, with_liar
from tests.support.condition import until

from freehold.computer import Computer
from freehold.computer.contract.spec import ComputerSpec, Mount
from freehold.errors import FreeholdError
from freehold.fleet import backend, folder_copy, start_attempts
from freehold.fleet.certificates import FleetKey
from freehold.fleet.computer_lease import LOST
from freehold.fleet.folder_state import FolderState, read_folder
from freehold.fleet.node import NodeRay
from freehold.fleet.node_folder import NodeSettings
from freehold.fleet.placer import NodeRoom, RoomRequest
from freehold.fleet.ray_sandbox import RayProcess
from freehold.fleet.versions import read_versions


@pytest.fixture(autouse=True)
def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_attempts, "PAUSE", 0.0)


@contextlib.asynccontextmanager
async def with_full_disk(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OneNode]:
    def refuse(*_: object) -> list[object]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with one_node() as fleet:
        monkeypatch.setattr(folder_copy, "_lay_out", refuse)
        yield fleet


async def test_a_node_whose_disk_is_full_is_said_to_and_not_tried_without_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "given").write_text("from here")
    async with with_full_disk(monkeypatch) as fleet:
        with pytest.raises(FreeholdError, match="cannot write a folder: No space left on device"):
            await Computer.start(tmp_path, on=fleet.place, limits=SMALL)._open()
        assert fleet.host.asked.count("prepare") == start_attempts.MAX_FAILURES
        assert not fleet.head.leases
        assert len(fleet.head.queue) == 0
        await until(lambda: not fleet.host._computers)


async def test_folders_that_the_owner_names_by_a_link_are_those_behind_it(tmp_path: Path) -> None:
    for name in ("work", "shown"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "given").write_text(f"of {name}")
        (tmp_path / f"to-{name}").symlink_to(name)
    async with one_node() as fleet:
        mounts = (Mount(tmp_path / "to-shown", "/mnt/shown"),)
        start = Computer.start(tmp_path / "to-work", on=fleet.place, limits=SMALL, mounts=mounts)
        async with start as computer:
            assert (await computer.run("cat given /mnt/shown/given; echo made > made")).stdout == b"of workof shown"
    assert (tmp_path / "work" / "made").read_text() == "made\n"
    assert (tmp_path / "to-work").is_symlink()


async def test_a_shown_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()

    def list_and_remove(spec: ComputerSpec) -> list[Mount]:
        shown.rmdir()
        return list(spec.mounts)

    monkeypatch.setattr(backend, "list_mounts", list_and_remove)
    async with one_node() as fleet:
        with pytest.raises(FreeholdError, match="shown cannot be read: No such file or directory"):
            await Computer.start(on=fleet.place, limits=SMALL, mounts=(Mount(shown, "/mnt/shown"),))._open()


@pytest.mark.parametrize("step", ["_prepare", "_start"])
async def test_a_start_whose_end_the_head_did_not_see_is_made_again_on_the_same_node(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    """The network was away for a moment. What the node has of it does not stand in the way, and is not there twice."""
    (tmp_path / "given").write_text("from here")
    async with one_node() as fleet:
        do, cuts = getattr(fleet.host, step), iter([True])

        async def cut(*arguments: Any) -> Any:
            done = await do(*arguments)
            if next(cuts, False):
                assert fleet.host._control is not None
                fleet.host._control.transport.abort()
            return done

        monkeypatch.setattr(fleet.host, step, cut)
        async with Computer.start(tmp_path, on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("cat given")).stdout == b"from here"
            assert len(fleet.host._computers) == 1
        assert fleet.host.asked.count("prepare") == 2


async def test_a_folder_that_changes_whenever_it_is_sent_is_said_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("begin\n")

    def look_and_write(*arguments: Any) -> FolderState:
        state = read_folder(*arguments)
        with (tmp_path / "log").open("a") as log:
            log.write("more\n")
        return state

    monkeypatch.setattr("freehold.fleet.computer_lease.read_folder", look_and_write)
    async with one_node() as fleet:
        with pytest.raises(FreeholdError, match="'log' changed while it was sent"):
            await Computer.start(tmp_path, on=fleet.place, limits=SMALL)._open()
        assert fleet.host.asked.count("prepare") == start_attempts.MAX_FAILURES


async def test_a_node_that_can_start_nothing_does_not_get_every_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is always the emptiest one. Ray would name it for ever."""
    async with with_liar(monkeypatch) as (fleet, liar):
        fleet.rooms.nodes["liar"] = NodeRoom(16, 2**34, 16, 2**34)
        failure = {"error": {"code": "fleet.failed", "message": "It is broken", "hint": ""}}
        monkeypatch.setattr(liar, "answer_with", lambda _do: failure)
        await until(lambda: not fleet.head.list_blocked())

        def choose(_id: str, request: RoomRequest) -> str:
            return "shed" if "liar" in request.not_on else "liar"

        monkeypatch.setattr(fleet.rooms, "choose", choose)
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo here")).stdout == b"here\n"
            assert remote(computer).node == "shed"
        assert liar.asked == ["prepare", "stop"]


async def test_a_node_that_comes_back_with_another_version_gets_no_computers_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with with_liar(monkeypatch) as (fleet, liar):
        await until(lambda: not fleet.head.list_blocked())
        liar.hellos = [{**HELLO, "versions": {**read_versions(), "freehold": "0.0.9"}}]
        link = fleet.head.find_link("liar")
        assert link is not None
        link._disconnect()
        await until(lambda: bool(link.skew))
        assert fleet.head.explain_block("liar").startswith("it has freehold 0.0.9 instead of ")
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert remote(computer).node == "shed"
        assert liar.asked == []


async def test_files_that_do_not_come_back_at_the_end_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever closes it would take them for unchanged."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with one_node() as fleet:
        computer = await Computer.start(tmp_path, on=fleet.place, limits=SMALL)._open()
        await computer.run("echo made > made")
        with monkeypatch.context() as patch:
            patch.setattr(folder_copy, "_make_folders", refuse)
            await computer.close()
        assert remote(computer).lost_because == "Its last files did not come back: No space left on device"
        assert "The computer on shed ended without its last files: Its last files" in caplog.text
        assert await remote(computer).wait() == LOST


async def test_a_node_goes_on_while_its_ray_cannot_be_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The disk is full when Ray is killed: the program that has the computers does not end for that."""

    class ShortRay:
        def kill(self) -> None:
            pass

        async def wait(self) -> int:
            return -9

    found: list[RayProcess | OSError] = [ShortRay(), OSError(errno.ENOSPC, "full"), ShortRay()]  # type: ignore[list-item]
    third = asyncio.Event()
    loop = asyncio.get_running_loop()

    def start(_folder: Path, _keys: object, _words: Mapping[str, Any], _log: int) -> RayProcess:
        if not found:
            loop.call_soon_threadsafe(third.set)
            raise OSError(errno.ENOSPC, "full")
        one = found.pop(0)
        if isinstance(one, OSError):
            raise one
        return one

    monkeypatch.setattr("freehold.fleet.node.RayProcess", start)
    monkeypatch.setattr("freehold.fleet.node.RESTART_PAUSE", 0.0)
    running = asyncio.ensure_future(NodeRay(tmp_path, make_settings()).run())
    await third.wait()
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_node_that_cannot_have_ray_at_all_ends_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FreeholdError, match="needs bubblewrap"):
        await NodeRay(tmp_path, make_settings()).run()


def make_settings() -> NodeSettings:
    key = FleetKey("", "")
    return NodeSettings("shed", "127.0.0.3", 1, 0, key, "", "127.0.0.2:1", "", "", key, 1, 2**30, 2**20)
