"""Computers beside `main`, through a real keeper."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.condition import until
from tests.support.freehold import FreeholdHarness

from freehold.computer import Computer
from freehold.computer.library.request import send_request
from freehold.errors import FreeholdError
from freehold.keeper.calls import ComputerInfo, ListComputers, RemoveKeptHome, StartComputer, StopComputer

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    """One keeper for all tests of this module."""
    harness = FreeholdHarness(tmp_path_factory.mktemp("computers"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness


@pytest.fixture
def second(harness: FreeholdHarness) -> Iterator[ComputerInfo]:
    info = harness.call(StartComputer("second", limits={"processes": 40, "memory": 256 * MIB}))
    yield info
    if any(one.name == "second" for one in harness.call(ListComputers()).computers):
        harness.call(StopComputer("second"))


async def test_two_computers_have_their_own_files_processes_ports_and_limits(
    harness: FreeholdHarness, second: ComputerInfo
) -> None:
    async with (
        Computer.connect(harness.home.computer_socket()) as main,
        Computer.connect(second.socket) as other,
    ):
        await main.files.write("only-in-main", b"1")
        await other.files.write("only-in-second", b"2")
        assert await main.files.exists("only-in-main")
        assert not await main.files.exists("only-in-second")
        assert not await other.files.exists("only-in-main")
        assert (Path(second.workspace) / "only-in-second").read_bytes() == b"2"

        async with await main.spawn(["sleep", "1000"]):
            assert [one.name for one in await main.processes() if one.name == "sleep"]
            assert not [one.name for one in await other.processes() if one.name == "sleep"]

        serve = "exec python3 -m http.server 8000 --bind 127.0.0.1"
        async with await other.spawn(serve):

            async def answers() -> bool:
                return (await other.run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000"])).ok

            await until(answers)
            assert not (await main.run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000"])).ok
        assert (await main.run("hostname")).text != (await other.run("hostname")).text

        # All of them live until the last has begun. The shell ends at the first that it cannot start.
        crowd = 'for i in $(seq 100); do sleep 1000 & all="$all $!"; done; kill $all'
        assert (await main.run(crowd)).ok
        assert not (await other.run(crowd)).ok


def test_a_second_computer_is_not_started_from_an_image_that_was_not_built_here(harness: FreeholdHarness) -> None:
    """It is checked against its lock, as that of `main` is at boot."""
    with pytest.raises(FreeholdError) as caught:
        harness.call(StartComputer("second", image="built"))
    assert caught.value.code == "image.not-built"
    build = harness.home.images / "one"
    (build / "root").mkdir(parents=True)
    (build / "image.json").write_text("{}")
    (harness.home.images / "current").symlink_to("one")
    with pytest.raises(FreeholdError) as caught:
        harness.call(StartComputer("second", image="built"))
    assert caught.value.code == "image.tampered"
    assert [one.name for one in harness.call(ListComputers()).computers] == ["main"]


async def test_a_copy_or_folder_that_a_starting_computer_has_taken_is_taken(
    harness: FreeholdHarness, tmp_path: Path
) -> None:
    (harness.home.copies / "run-1" / "workspace").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    for copy, home in (("run-1", None), (None, str(tmp_path / "home"))):
        orders = [StartComputer(name, copy=copy, home=home) for name in ("one", "two")]
        starts = [asyncio.to_thread(harness.call, order) for order in orders]
        ended = await asyncio.gather(*starts, return_exceptions=True)
        started, refused = sorted(ended, key=lambda one: isinstance(one, FreeholdError))
        assert isinstance(started, ComputerInfo)
        assert isinstance(refused, FreeholdError)
        assert refused.code == "computer.folder-in-use"
        harness.call(StopComputer(started.name))


async def test_the_reserved_ports_of_a_second_computer_lead_nowhere(second: ComputerInfo) -> None:
    """Egress, models and host tools are served in `main` only, until the gateway is told otherwise."""
    async with Computer.connect(second.socket) as other:
        for port in (3128, 3129, 3130):
            read = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3; cat <&3"
            ran = await other.run(["bash", "-c", read], timeout=5)
            assert not ran.stdout
            assert b"reset" in ran.stderr or not ran.ok


async def test_stopping_the_second_leaves_main_untouched(harness: FreeholdHarness, second: ComputerInfo) -> None:
    async with Computer.connect(harness.home.computer_socket()) as main:
        process = await main.spawn(["sleep", "1000"])
        before = harness.programs()["computer"]
        harness.call(StopComputer("second"))
        assert not Path(second.socket).exists()
        assert not Path(second.workspace).exists()
        assert [one.name for one in harness.call(ListComputers()).computers] == ["main"]
        assert process.exit is None
        assert harness.programs()["computer"].starts == before.starts
        await process.close()


async def test_a_second_computer_that_dies_is_gone(harness: FreeholdHarness, second: ComputerInfo) -> None:
    """It is not started again."""
    async with Computer.connect(second.socket) as other:
        assert (await other.run("true")).ok
        await send_request(other._connection.link, {"op": "shutdown"})

        async def gone() -> bool:
            return [one.name for one in harness.call(ListComputers()).computers] == ["main"]

        await until(gone)
    assert not Path(second.workspace).exists()


def test_the_list_names_limits_and_isolation(harness: FreeholdHarness, second: ComputerInfo) -> None:
    main, other = harness.call(ListComputers()).computers
    assert (main.name, other.name) == ("main", "second")
    assert main.socket == str(harness.home.computer_socket())
    assert main.workspace == str(harness.home.workspace)
    assert other.limits["processes"] == 40
    assert main.limits["processes"] == 1024
    assert other.isolation is not None
    assert other.isolation.backend == "bubblewrap"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (StartComputer("main"), "computer.name-taken"),
        (StartComputer("second"), "computer.name-taken"),
        (StartComputer("../evil"), "computer.bad-name"),
        (StartComputer("third", limits={"memory": -1}), "computer.bad-limit"),
        (StartComputer("third", limits={"magic": 1}), "computer.bad-limit"),
        (StartComputer("third", workspace="/nowhere"), "computer.no-folder"),
        (StartComputer("third", image="/nowhere"), "computer.unknown-image"),
        (StopComputer("main"), "computer.not-temporary"),
        (StopComputer("third"), "computer.not-temporary"),
    ],
)
def test_what_cannot_be_done_is_refused(
    harness: FreeholdHarness, second: ComputerInfo, call: StartComputer | StopComputer, code: str
) -> None:
    with pytest.raises(FreeholdError) as caught:
        harness.call(call)
    assert caught.value.code == code
    assert not (harness.home.temporary_computers / "third").exists()


@pytest.mark.parametrize("part", ["vault", "workspace", ""])
def test_folders_of_this_freehold_are_refused(harness: FreeholdHarness, part: str) -> None:
    """A second computer would own the owner's files, or see the vault."""
    with pytest.raises(FreeholdError) as caught:
        harness.call(StartComputer("third", workspace=str(harness.home.root / part)))
    assert caught.value.code == "computer.folder-in-use"


def test_stopping_the_keeper_ends_all_computers(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    folders = {name: tmp_path / "second" / name for name in ("workspace", "home")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    with harness.keeper() as keeper:
        keeper.next("ready")
        info = harness.call(StartComputer("second", workspace=str(folders["workspace"]), home=str(folders["home"])))
        assert Path(info.socket).exists()
        keeper.stop()
    assert not list(harness.home.run.glob("computer-*"))
    assert not harness.home.temporary_computers.exists() or not list(harness.home.temporary_computers.iterdir())
    assert all(folder.is_dir() for folder in folders.values()), "folders of the caller are never removed"


async def test_a_kept_home_stays_until_it_is_removed_and_two_computers_never_share_one(
    harness: FreeholdHarness,
) -> None:
    first = harness.call(StartComputer("first", kept_home="browser-1"))
    async with Computer.connect(first.socket) as computer:
        await computer.files.write("/home/agent/cookie", b"1")
    for refused in (StartComputer("other", kept_home="browser-1"), RemoveKeptHome("browser-1")):
        with pytest.raises(FreeholdError) as caught:
            harness.call(refused)
        assert caught.value.code == "computer.folder-in-use"
    harness.call(StopComputer("first"))
    again = harness.call(StartComputer("other", kept_home="browser-1"))
    async with Computer.connect(again.socket) as computer:
        assert await computer.files.read("/home/agent/cookie") == b"1"
    harness.call(StopComputer("other"))
    harness.call(RemoveKeptHome("browser-1"))
    harness.call(RemoveKeptHome("browser-1"))
    assert not (harness.home.kept_homes / "browser-1").exists()


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", "", "A"])
def test_a_kept_home_has_a_plain_name(harness: FreeholdHarness, name: str) -> None:
    for refused in (StartComputer("other", kept_home=name), RemoveKeptHome(name)):
        with pytest.raises(FreeholdError) as caught:
            harness.call(refused)
        assert caught.value.code == "computer.no-folder"
