"""What the start and the end of a computer cost between client, head, node and Ray, and that each gets a clean one."""

from pathlib import Path

from tests.fleet.fleet_work import SMALL
from tests.fleet.one_node import one_node

from freehold.computer import Computer
from freehold.fleet.placer import NodeRoom
from freehold.fleet.section import FleetSection


async def test_a_computer_without_files_costs_a_node_two_requests_and_one_connection() -> None:
    async with one_node() as fleet:
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo hello")).stdout == b"hello\n"
        assert fleet.host.asked == ["prepare", "stop"]
        assert fleet.host.openings == ["control", "link"]
        assert fleet.host.connections == 2
        assert not fleet.head.leases


async def test_a_folder_with_files_is_sent_between_two_requests(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("from here")
    async with one_node() as fleet:
        async with Computer.start(tmp_path, on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("cat given; echo made > made")).stdout == b"from here"
        assert (tmp_path / "made").read_text() == "made\n"
        assert fleet.host.asked == ["prepare", "start", "stop", "remove"]
        assert sorted(fleet.host.openings) == ["control", "fill", "link", "take", "take"]


async def test_ten_computers_one_after_the_other_need_one_reservation_and_see_nothing_of_each_other() -> None:
    async with one_node() as fleet:
        pids = set()
        for _ in range(10):
            async with Computer.start(on=fleet.place, limits=SMALL) as computer:
                assert (await computer.run("ls -A; ls -A /tmp; echo x | tee used /tmp/used")).stdout == b"x\n"
                pids.add(getattr(computer.machine, "guest_pid", None))
        assert len(pids) == 10
        assert len(fleet.rooms.asked) == 1
        assert fleet.rooms.released == []


async def test_a_pool_of_64_is_ready_though_a_session_has_a_smaller_share() -> None:
    quota = FleetSection().max_per_session
    assert quota < 64
    async with one_node(quota=quota) as fleet:
        fleet.rooms.nodes["shed"] = NodeRoom(64, 2**36, 64, 2**36)
        async with Computer.pool(64, on=fleet.place, limits=SMALL) as pool:
            await pool.wait_ready()
            assert len(fleet.head.leases) == 64


async def test_a_second_link_has_a_connection_of_its_own() -> None:
    async with one_node() as fleet, Computer.start(on=fleet.place, limits=SMALL) as computer:
        async with Computer.connect(computer.transport) as other:
            assert (await other.run("echo other")).stdout == b"other\n"
        assert (await computer.run("echo first")).stdout == b"first\n"
        assert fleet.host.openings == ["control", "link", "link"]
