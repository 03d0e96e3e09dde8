"""`freehold mesh`, as the owner types it, against running Freeholds."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result
from tests.mesh.freeholds import PEER, MeshFreehold, pair, running_mesh
from tests.mesh.relays import relay_url
from tests.support.condition import until
from tests.support.scripted_runs import use_scripted_runs

from freehold.cli.main import freehold_command
from freehold.mesh.facts import ClientFacts
from freehold.mesh.nostr.keys import make_key, read_secret_key, show_key
from freehold.slots.orchestrator.engine import ChildReport

Two = tuple[MeshFreehold, MeshFreehold]
HOST = '[slots]\nbeads = "local"\norchestrator = "local"\n[mesh]\nmode = "host"\nname = "host"\n[mesh.relay]\nenabled = true\n'


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


async def test_what_a_client_tells_and_was_given_is_shown(two: Two) -> None:
    host, _ = two
    key, image = make_key(), "a" * 64
    host.mesh.neighbours.add(
        key.public, "paired", url=None, did=None, grants=("register", "work"), given=(), who="test"
    )
    await host.mesh.clients.register(key.public, ClientFacts("1", image, {"beads": 3}, ("work",), 0.5))
    text = await read(host, "clients")
    for words in (image, "beads 3", "load 0.50", "works there: work", "uses here: register, work"):
        assert words in text


async def test_the_status_shows_when_a_relay_was_connected_and_what_the_host_serves(
    two: Two, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host, _ = two
    relay, away = relay_url(host), "ws://127.0.0.1:9"
    manifest = f'[mesh]\nmode = "client"\nname = "laptop"\nhost = "{host.url}"\nheartbeat = 1\nrelays = ["{relay}", "{away}"]\n'
    async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as client:
        await until(lambda: host.gateway.services.slots.beads.status.state == "ok")
        await pair(host, client, gives=("register", "beads"))

        async def is_told() -> bool:
            lines = {line.split()[0]: line for line in (await read(client, "status")).splitlines()}
            return (
                "last connected 2" in lines[f"{relay}:"]
                and "never connected, 2 waiting" in lines[f"{away}:"]
                and lines["host"].endswith("registered, serves beads")
            )

        await until(is_told)
