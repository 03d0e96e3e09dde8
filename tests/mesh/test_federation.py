"""A host and its clients: registration, heartbeats, eviction and return, with real gateways."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import listen
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.support.condition import until

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.mesh.facts import ClientFacts
from freehold.mesh.http_signature import sign_request
from freehold.mesh.nostr.keys import NostrKey, make_key
from freehold.strict_json import decode

HOST = '[slots]\nbeads = "local"\n[mesh]\nmode = "host"\nheartbeat = 1\n'
PATIENT = HOST.replace("heartbeat = 1", "heartbeat = 60")
FACTS = {"version": "1", "contracts": {}, "capabilities": [], "load": 0.0}


def client_manifest(host: str) -> str:
    return f'[mesh]\nmode = "client"\nhost = "{host}"\nheartbeat = 1\n'


@pytest.fixture
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home"), PATIENT) as running:
        await until(lambda: running.gateway.services.slots.beads.status.state == "ok")
        yield running


async def state_of(client: MeshFreehold) -> str:
    return str((await client.ask("GET", "/v1/mesh"))["registration"]["state"])


async def registered(host: MeshFreehold) -> list[str]:
    return [one["name"] for one in await host.ask("GET", "/v1/mesh/clients")]


def add_paired(host: MeshFreehold, key: NostrKey, *grants: str) -> None:
    host.mesh.neighbours.add(key.public, "paired", url=None, did=None, grants=grants, given=(), who="test")  # type: ignore[arg-type]


async def test_a_client_registers_when_it_is_paired_and_leaves_when_it_stops(
    host: MeshFreehold, tmp_path: Path
) -> None:
    async with running_mesh(tmp_path, client_manifest(host.url)) as client:
        assert await state_of(client) == "waiting"
        await pair(host, client, gives=("register", "beads"))
        await until(lambda: _is(client, "registered"))
        (found,) = await host.ask("GET", "/v1/mesh/clients")
        assert (found["name"], found["slots"]) == ("other", ["beads"])
        assert (await client.ask("GET", "/v1/mesh"))["registration"]["slots"] == ["beads"]
        heard = found["heard"]
        await until(lambda: _heard_after(host, heard))
    await until(lambda: _left(host))
    left = host.gateway.services.timeline.read(kinds=["mesh.client_left"])[-1]
    assert left.data["reason"] == "it said goodbye"


async def test_a_host_knows_what_a_client_tells_and_reaches_nothing_of_it(host: MeshFreehold, tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    async with running_mesh(tmp_path, '[slots]\nbeads = "local"\n' + client_manifest(host.url)) as client:
        client.gateway.services.home.image_lock.write_text("a lock")
        await pair(host, client, gives=("register", "beads", "work"))
        await until(lambda: _is(client, "registered"))
        (found,) = await host.ask("GET", "/v1/mesh/clients")
        assert found["version"] == __version__
        assert found["image"] == hashlib.sha256(b"a lock").hexdigest()
        assert found["contracts"]["beads"] >= 1
        assert (found["load"] >= 0, bool(found["health"])) == (True, True)
        key = host.mesh.key
        for path in ("/v1/slots/beads/items", "/v1/mesh/neighbours", "/v1/sessions", "/v1/files/list", "/v1/timeline"):
            assert (await client.send_signed(key, "GET", path)).status_code == 403, path
        body = json.dumps({"id": "a", "prompt": "x"}).encode()
        assert (await client.send_signed(key, "POST", "/v1/mesh/hosted", body)).status_code == 403


async def _is(client: MeshFreehold, state: str) -> bool:
    return await state_of(client) == state


async def _heard_after(host: MeshFreehold, moment: str) -> bool:
    found = await host.ask("GET", "/v1/mesh/clients")
    return bool(found) and found[0]["heard"] > moment


async def _left(host: MeshFreehold) -> bool:
    return await registered(host) == []


async def test_an_evicted_client_says_so_and_is_back_after_it_paired_again(host: MeshFreehold, tmp_path: Path) -> None:
    async with running_mesh(tmp_path, client_manifest(host.url)) as client:
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))
        await host.ask("DELETE", "/v1/mesh/neighbours/other")
        assert await registered(host) == []
        await until(lambda: _is(client, "evicted"))
        health = (await client.gateway.http.get("/health", headers=client.owner)).json()
        state = next(one for one in health["components"] if one["name"] == "mesh")
        assert (state["state"], host.url in state["last_error"]) == ("degraded", True)
        told = client.gateway.services.timeline.read(kinds=["mesh.registration_changed"])[-1]
        assert told.data["state"] == "evicted"
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))


async def test_a_client_that_is_silent_is_evicted(tmp_path: Path) -> None:
    key, facts = make_key(), json.dumps(FACTS).encode()
    async with running_mesh(tmp_path, HOST) as host:
        add_paired(host, key, "register")
        answer = await host.send_signed(key, "POST", "/v1/mesh/register", facts)
        await until(lambda: _left(host))
        body = json.dumps({"session": answer.json()["session"]}).encode()
        late = await host.send_signed(key, "POST", "/v1/mesh/heartbeat", body)
        assert (late.status_code, late.json()["error"]["code"]) == (410, "mesh.evicted")
        assert (await host.send_signed(key, "POST", "/v1/mesh/register", facts)).status_code == 200


async def test_a_host_that_is_lost_is_found_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    async with running_mesh(home, PATIENT) as host:
        url = host.url
        async with running_mesh(tmp_path_factory.mktemp("home"), client_manifest(url)) as client:
            await pair(host, client, gives=("register",))
            await until(lambda: _is(client, "registered"))
            host.mesh.clients._known.clear()
            before = client.mesh.registration
            assert before is not None
            # The partition: nothing listens there.
            with listen() as closed:
                away = f"http://localhost:{closed.getsockname()[1]}"
            neighbour = client.mesh.neighbours.get("maker")
            client.mesh.neighbours._change(neighbour.pubkey, "url", away)
            before._url = away
            await until(lambda: _is(client, "away"))
            client.mesh.neighbours._change(neighbour.pubkey, "url", url)
            before._url = url
            await until(lambda: _is(client, "registered"))
            await until(lambda: _registered_again(host))


async def _registered_again(host: MeshFreehold) -> bool:
    return await registered(host) == ["other"]


async def test_registering_ten_thousand_times_takes_one_place_and_is_slowed_down(tmp_path: Path) -> None:
    """A hundred times over HTTP, and then at the two doors behind it: the check of signatures and the table."""
    key, body = make_key(), json.dumps(FACTS).encode()
    async with running_mesh(tmp_path, PATIENT) as host:
        add_paired(host, key, "register")
        timeline, started = host.gateway.services.timeline, time.monotonic()
        before = timeline.last()
        answers = await asyncio.gather(*(host.send_signed(key, "POST", "/v1/mesh/register", body) for _ in range(100)))
        found = [one.status_code for one in answers]
        found += [await register_directly(host, key, body) for _ in range(9_900)]
        # Ten at once, and one more every five seconds.
        most = 11 + (time.monotonic() - started) / 5
        assert found.count(200) <= most
        assert set(found) == {200, 429}
        assert await registered(host) == ["paired"]
        after = timeline.last()
        assert before is not None
        assert after is not None
        assert after.seq - before.seq <= most


async def register_directly(host: MeshFreehold, key: NostrKey, body: bytes) -> int:
    """The status that a signed request would get. Each is signed for itself."""
    url = f"{host.url}/v1/mesh/register"
    header = sign_request(key, "POST", url, body).removeprefix("Nostr ").encode()
    try:
        signature = host.mesh.signatures.verify(header, "POST", url)
        assert signature is not None
        await host.mesh.clients.register(signature.signer, decode(ClientFacts, {**FACTS, "image": None}))
    except FreeholdError as error:
        return error.kind.status
    return 200


async def test_a_neighbour_without_that_grant_and_a_token_cannot_register(host: MeshFreehold) -> None:
    key = make_key()
    add_paired(host, key, "beads")
    refused = await host.send_signed(key, "POST", "/v1/mesh/register", json.dumps(FACTS).encode())
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "mesh.denied")
    unsigned = await host.gateway.http.post("/v1/mesh/register", json=FACTS, headers=host.owner)
    assert (unsigned.status_code, unsigned.json()["error"]["code"]) == (401, "mesh.unsigned")


async def test_a_host_that_restarts_knows_its_clients(tmp_path: Path) -> None:
    key = make_key()
    async with running_mesh(tmp_path, PATIENT) as host:
        add_paired(host, key, "register")
        answer = await host.send_signed(key, "POST", "/v1/mesh/register", json.dumps(FACTS).encode())
        body = json.dumps({"session": answer.json()["session"]}).encode()
    async with running_mesh(tmp_path, PATIENT) as host:
        beat = await host.send_signed(key, "POST", "/v1/mesh/heartbeat", body)
        assert beat.status_code == 200
