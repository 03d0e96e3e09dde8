"""The fleet in the API: who may look at it and change it, and what the owner is shown. The head is real; it has no Ray."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.fleet import HEAD

from freehold.client import Freehold
from freehold.computer.contract.spec import ComputerSpec
from freehold.fleet import cli, health
from freehold.fleet.certificates import make_own_pair
from freehold.fleet.client_door import ClientDoor
from freehold.fleet.computer_lease import ComputerLease, LeaseOrder
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.head_commands import HeadCommands, describe_fleet
from freehold.fleet.join_door import JoinDoor
from freehold.fleet.node_link import NodeAddress, NodeLink
from freehold.fleet.placer import RoomRequest
from freehold.fleet.remote_spec import describe_spec
from freehold.fleet.status import MachineRow
from freehold.strict_json import encode

HOSTILE = "\x1b[2J\u202ebackwards"


class SilentHead:
    """A head whose nodes are away, and a computer on one of them."""

    def __init__(self, root: Path) -> None:
        certificate = make_own_pair("node").certificate
        nodes = {
            name: KnownNode(name, f"127.0.0.{place}", 7870, certificate, "", {"arch": "x86_64"})
            for place, name in enumerate(("attic", "shed"), 3)
        }
        self.folder = FleetFolder(root / "fleet")
        self.folder.change_nodes(lambda _: nodes)
        self.head = FleetHead(self.folder.read_head(), nodes, quota=0, save_every=30)
        door = JoinDoor(self.folder, HEAD, 7810, 7811, lambda node: None)
        self.door = ClientDoor(self.head, "SPREAD", HeadCommands(self.head, self.folder, door).by_name())
        self.link = NodeLink(NodeAddress("shed", "127.0.0.4", 1, None), *([lambda *_: None] * 3))  # type: ignore[arg-type]

    def add_computer(self, name: str, *, waits: bool = False) -> ComputerLease:
        spec = describe_spec(ComputerSpec(Path("/"), Path("/"), hostname=name), ())
        order = LeaseOrder(spec, RoomRequest(2, 2**30, gpus=1), 0, "session:s1", {})
        lease = ComputerLease(name.ljust(32, "0"), order, socket.socket())
        self.head.leases[lease.id] = lease
        if waits:
            self.head.queue.add(lease.id, order.room, 0, order.who, 0.0)
        else:
            lease.state, lease.node = "running", self.link
        return lease


@contextlib.asynccontextmanager
async def running(tmp_path: Path) -> AsyncIterator[tuple[RunningGateway, SilentHead]]:
    manifest = f'[fleet]\nenabled = true\naddress = "{HEAD}"\n'
    async with running_gateway(tmp_path / "home", manifest) as gateway:
        head = SilentHead(tmp_path)
        async with head.door.serve(gateway.services.home.run / "fleet.sock"):
            yield gateway, head
        for lease in head.head.leases.values():
            lease.close()


async def get_fleet(gateway: RunningGateway, headers: dict[str, str]) -> dict[str, Any]:
    answer = await gateway.http.get("/v1/fleet", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_owner_sees_nodes_computers_and_what_waits_and_a_token_needs_the_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, head):
        head.add_computer("run-one")
        head.add_computer("run-two", waits=True)
        head.link.trouble = HOSTILE
        head.head._links["shed"] = head.link, asyncio.ensure_future(asyncio.sleep(0))
        assert (await gateway.http.get("/v1/fleet")).status_code == 401
        read = gateway.token("read")
        found = await get_fleet(gateway, read)
        assert (found["enabled"], found["ready"]) == (True, False)
        assert [(node["name"], node["state"], node["computers"]) for node in found["nodes"]] == [
            ("attic", "away", 0),
            ("shed", "away", 1),
        ]
        assert found["nodes"][0]["labels"] == {"arch": "x86_64"}
        assert "⟨U+001B⟩[2J⟨U+202E⟩backwards" in found["nodes"][1]["trouble"]
        (computer,) = found["computers"]
        assert (computer["name"], computer["node"], computer["session"], computer["gpus"]) == (
            "run-one",
            "shed",
            None,
            1,
        )
        (wait,) = found["waiting"]
        assert (wait["name"], wait["reason"]) == ("run-two", "Ray is starting")
        assert (found["computer_count"], found["waiting_count"]) == (1, 1)
        for method, more in (("PATCH", {"json": {"draining": True}}), ("DELETE", {})):
            refused = await gateway.http.request(method, "/v1/fleet/nodes/shed", headers=read, **more)  # type: ignore[arg-type]
            assert refused.status_code == 403
        assert set(head.head.known) == {"attic", "shed"}


async def test_the_computer_of_a_run_is_shown_with_its_session(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, head):
        engine: Any = gateway.services.slots.engine.engine
        engine._sessions_by_computer["run-one"] = "s9"
        head.add_computer("run-one")
        found = await get_fleet(gateway, gateway.token("read"))
        assert found["computers"][0]["session"] == "s9"


async def test_a_node_is_drained_and_a_busy_one_is_removed_only_when_its_computers_may_be_lost(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, head):
        lease = head.add_computer("run-one")
        secret = gateway.token("read", "admin")["authorization"].removeprefix("Bearer ")
        async with Freehold(gateway.url, token=secret) as home:
            assert (await home.fleet.drain("shed")).computers == 1
            assert head.head.known["shed"].is_draining
            assert head.folder.read_nodes()["shed"].is_draining
            await home.fleet.drain("shed", draining=False)
            assert not head.head.known["shed"].is_draining
            with pytest.raises(Exception, match="1 computers are on shed"):
                await home.fleet.remove("shed")
            assert (await home.fleet.remove("shed", lose=True)).computers == 1
            assert [node.name for node in (await home.fleet.get()).nodes] == ["attic"]
            with pytest.raises(Exception, match="no node 'shed'"):
                await home.fleet.remove("shed")
        assert lease.state == "ended"
        kinds = [event.kind for event in gateway.services.timeline.read() if event.kind.startswith("fleet.")]
        assert kinds == ["fleet.node_drained", "fleet.node_resumed", "fleet.node_removed"]


async def test_without_a_fleet_nothing_is_shown_and_nothing_can_be_changed(gateway_alone: RunningGateway) -> None:
    headers = gateway_alone.token("read", "admin")
    found = await get_fleet(gateway_alone, headers)
    assert (found["enabled"], found["nodes"]) == (False, [])
    refused = await gateway_alone.http.delete("/v1/fleet/nodes/shed", headers=headers)
    assert refused.json()["error"]["code"] == "fleet.disabled"


async def test_a_fleet_that_does_not_run_is_said_to(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, f'[fleet]\nenabled = true\naddress = "{HEAD}"\n') as gateway:
        answer = await gateway.http.get("/v1/fleet", headers=gateway.token("read"))
        assert answer.json()["error"]["code"] == "fleet.not-running"


@pytest.fixture
async def gateway_alone(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as found:
        yield found


async def test_nothing_that_others_have_said_reaches_the_terminal_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node says it as its version, a client as the name of a computer, a provider as the reason of its failure."""
    async with running(tmp_path) as (gateway, head):
        head.add_computer(HOSTILE)
        head.add_computer(f"{HOSTILE}2", waits=True)
        head.link.trouble = HOSTILE
        head.head._links["shed"] = head.link, asyncio.ensure_future(asyncio.sleep(0))
        status = describe_fleet(head.head)
        lying = replace(status, trouble=HOSTILE, machines=(MachineRow("shed", "small", "stopping", HOSTILE),))
        runner, home = CliRunner(), str(gateway.services.home.root)
        monkeypatch.setattr(cli, "_ask", lambda *_: encode(lying))
        done = await asyncio.to_thread(runner.invoke, cli.command, ["status", "--home", home])
        assert done.exit_code == 0, done.output
        assert done.output.count("⟨U+001B⟩[2J⟨U+202E⟩backwards") == 4
        found = await get_fleet(gateway, gateway.token("read"))

        async def is_up(*_: object) -> None:
            return None

        monkeypatch.setattr(health, "probe_program", is_up)
        probe = await health.make_probe(gateway.services)()
        assert probe is not None
        for shown in (done.output, str(found), str(probe)):
            assert "\x1b" not in shown
            assert "\u202e" not in shown
