"""`freehold mesh`, as the owner types it, against running Freeholds."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result
from tests.mesh.freeholds import PEER, MeshFreehold, running_mesh
from tests.support.condition import until
from tests.support.scripted_runs import use_scripted_runs

from freehold.cli.main import freehold_command
from freehold.mesh.nostr.keys import read_secret_key, show_key
from freehold.slots.orchestrator.engine import ChildReport

Two = tuple[MeshFreehold, MeshFreehold]
HOST = '[slots]\norchestrator = "local"\n[mesh]\nmode = "host"\nname = "host"\n[mesh.relay]\nenabled = true\n'


@pytest.fixture
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    async with (
        running_mesh(tmp_path_factory.mktemp("home"), HOST) as host,
        running_mesh(tmp_path_factory.mktemp("home"), PEER + 'name = "laptop"\n') as laptop,
    ):
        yield host, laptop


async def run(freehold: MeshFreehold, *words: str, typed: str = "") -> Result:
    """In a thread: the command asks the gateway, which lives in this loop."""
    arguments = ["mesh", *words, "--home", str(freehold.gateway.services.home.root)]
    return await asyncio.to_thread(CliRunner().invoke, freehold_command, arguments, typed)


async def read(freehold: MeshFreehold, *words: str, typed: str = "") -> str:
    found = await run(freehold, *words, typed=typed)
    assert found.exit_code == 0, (found.output, found.exception)
    return found.output


async def test_pairing_shows_the_key_before_it_is_done(two: Two) -> None:
    host, laptop = two
    code = json.loads(await read(host, "pair", "--new", "--grant", "work", "--name", "laptop", "--json"))["code"]
    refused = await run(laptop, "pair", code, typed="n\n")
    assert refused.exit_code == 1
    assert show_key(host.mesh.key.public) in refused.output
    assert laptop.mesh.neighbours.list() == []
    assert "Paired with host" in await read(laptop, "pair", code, typed="y\n")
    assert "gives: work" in await read(laptop, "neighbours")
    assert "laptop may use here: beads" in await read(host, "grant", "laptop", "--grant", "beads")
    assert "laptop is out" in await read(host, "evict", "laptop")
    assert "no neighbours" in await read(host, "neighbours")
    assert (await run(host, "evict", "laptop")).exit_code == 1


async def test_the_key_is_shown_exported_and_replaced(two: Two) -> None:
    host, _ = two
    npub = show_key(host.mesh.key.public)
    assert npub in await read(host, "status")
    assert (await read(host, "identity")).strip() == npub
    secret = (await read(host, "identity", "--export")).strip()
    assert show_key(read_secret_key(secret).public) == npub
    record = json.loads(await read(host, "identity", "--record"))
    assert (record["rkey"], record["record"]["npub"]) == (npub, npub)
    assert (await read(host, "identity", "--replace")).strip() != npub
    assert (await read(host, "identity", "--import", typed=f"{secret}\n")).strip().endswith(npub)


async def test_work_and_messages_go_to_a_neighbour_and_are_listed(two: Two) -> None:
    host, laptop = two
    runs = await use_scripted_runs(host.gateway)
    code = json.loads(await read(host, "pair", "--new", "--grant", "work", "--json"))["code"]
    await read(laptop, "pair", code, "--yes")
    assert "Work on a prompt" in await read(laptop, "agents", "host")
    sent = json.loads(await read(laptop, "send", "host", "Write a poem", "--json"))
    await until(lambda: bool(runs.children))
    await runs.tell(next(iter(runs.children)), ChildReport(state="done"))
    await until(lambda: laptop.mesh.work.jobs.get(sent["id"]).state == "done")
    assert "Write a poem" in await read(laptop, "work")
    assert "done" in await read(laptop, "work", sent["id"])
    assert (await run(laptop, "work", sent["id"], "--accept")).exit_code == 1
    assert (await run(laptop, "work", "--accept")).exit_code == 2
    assert "as soon as a relay takes it" in await read(host, "tell", "laptop", "hello")
    assert "No neighbour has written" in await read(laptop, "events")
    assert "No client is registered" in await read(host, "clients")


async def test_a_mesh_that_is_off_says_how_to_turn_it_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.gateway.running_gateway import running_gateway

    root = tmp_path_factory.mktemp("home")
    async with running_gateway(root):
        found = await asyncio.to_thread(CliRunner().invoke, freehold_command, ["mesh", "status", "--home", str(root)])
    assert found.exit_code == 1
    assert "mesh is off" in str(found.exception)
