"""A host and its clients: registration, heartbeats, eviction and return, with real gateways."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gateway.running_gateway import listen, running_gateway
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.support.condition import DEADLINE, until

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.mesh import neighbours, registration
from freehold.mesh.clients import MISSED, RegisteredClients
from freehold.mesh.facts import ClientFacts
from freehold.mesh.http_signature import sign_request
from freehold.mesh.mesh import Mesh
from freehold.mesh.nostr.keys import NostrKey, make_key
from freehold.mesh.peer_address import check_address
from freehold.mesh.registration import HostLink, HostRegistration
from freehold.mesh.service import MeshService
from freehold.strict_json import decode
from freehold.timeline import Timeline

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
    host: MeshFreehold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "GOODBYE_TIMEOUT", DEADLINE)
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
        assert found["grants"] == ["beads", "register", "work"]
        key = host.mesh.key
        for path in ("/v1/slots/beads/items", "/v1/mesh/neighbours", "/v1/sessions", "/v1/files/list", "/v1/timeline"):
            assert (await client.send_signed(key, "GET", path)).status_code == 403, path
        body = json.dumps({"id": "a", "prompt": "x"}).encode()
        assert (await client.send_signed(key, "POST", "/v1/mesh/hosted", body)).status_code == 403


async def _is(client: MeshFreehold, state: str) -> bool:
    return await state_of(client) == state


def _last_told(timeline: Timeline) -> object:
    """The state that the timeline was told last."""
    return timeline.read(kinds=["mesh.registration_changed"])[-1].data["state"]


def _all_told(timeline: Timeline) -> list[object]:
    return [one.data["state"] for one in timeline.read(kinds=["mesh.registration_changed"])]


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
        # It is stored a moment after it is known.
        timeline = client.gateway.services.timeline
        await until(lambda: _last_told(timeline) == "evicted")
        health = (await client.gateway.http.get("/health", headers=client.owner)).json()
        state = next(one for one in health["components"] if one["name"] == "mesh")
        assert (state["state"], host.url in state["last_error"]) == ("degraded", True)
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))


async def test_a_client_that_lost_its_place_registers_again_and_is_not_said_to_be_evicted(
    host: MeshFreehold, tmp_path: Path
) -> None:
    """As when it slept and heartbeats were missed. It is still paired."""
    async with running_mesh(tmp_path, client_manifest(host.url)) as client:
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))
        timeline = client.gateway.services.timeline
        await until(lambda: bool(_all_told(timeline)) and _last_told(timeline) == "registered")
        before = len(_all_told(timeline))
        await host.mesh.clients.remove(client.mesh.key.public, None, "3 heartbeats are missing")
        await until(lambda: len(_all_told(timeline)) > before and _last_told(timeline) == "registered")
        assert await registered(host) == ["other"]
        assert "evicted" not in _all_told(timeline)


async def test_a_host_whose_mesh_has_not_started_evicts_nobody(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client says that the host is away, and asks again."""
    root, load = tmp_path_factory.mktemp("home"), Mesh.load
    broken = False

    def load_or_fail(mesh: Mesh) -> None:
        if broken and mesh.section.mode == "host":
            raise FreeholdError("vault.damaged", "The vault cannot be read")
        load(mesh)

    monkeypatch.setattr(Mesh, "load", load_or_fail)
    async with (
        running_mesh(root, PATIENT) as host,
        running_mesh(tmp_path_factory.mktemp("home"), client_manifest(host.url)) as client,
    ):
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))
        key, place = client.mesh.key, host.gateway.context.service(MeshService)
        opened, place._mesh = place._mesh, None
        beat = json.dumps({"session": "x"}).encode()
        answer = await host.send_signed(key, "POST", "/v1/mesh/heartbeat", beat)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "mesh.not-ready")
        await until(lambda: _is(client, "away"))
        place._mesh = opened
        await until(lambda: _is(client, "registered"))
        assert "evicted" not in _all_told(client.gateway.services.timeline)
    broken = True
    async with running_gateway(root, PATIENT) as gateway:
        headers = {"authorization": sign_request(key, "POST", f"{gateway.url}/v1/mesh/register", b"{}")}
        answer = await gateway.http.post("/v1/mesh/register", content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "mesh.not-ready")


@pytest.mark.parametrize(
    "spelling",
    ["http://127.0.0.1:{port}", "http://LOCALHOST:{port}/", "http://[::1]:{port}", "http://localhost:{port}"],
)
async def test_a_host_is_found_however_its_address_is_written(host: MeshFreehold, spelling: str) -> None:
    client = _make_client(host, spelling.format(port=host.gateway.port))
    with pytest.raises(FreeholdError, match="not paired"):
        client._find_host()
    add_paired(host, make_key(), "register")
    host.mesh.neighbours._change(host.mesh.neighbours.get("paired").pubkey, "url", host.url)
    assert client._find_host().name == "paired"


@pytest.mark.parametrize(
    "spelling", ["https://Hub.Example.com", "https://hub.example.com:443", "https://hub.example.com/"]
)
async def test_a_host_on_another_machine_is_found_however_its_address_is_written(
    host: MeshFreehold, spelling: str
) -> None:
    key = make_key()
    host.mesh.neighbours.add(
        key.public, "hub", url=check_address("https://hub.example.com"), did=None, grants=(), given=(), who="test"
    )
    assert _make_client(host, spelling)._find_host().name == "hub"
    with pytest.raises(FreeholdError, match="not paired"):
        _make_client(host, "https://hub.example.com:8443")._find_host()


def _make_client(host: MeshFreehold, url: str) -> HostRegistration:
    """One that asks nobody."""

    async def answer(*_: object) -> dict[str, object]:
        return {}

    async def facts() -> ClientFacts:
        return decode(ClientFacts, {**FACTS, "image": None})

    link = HostLink(host.mesh.neighbours, answer, facts, lambda: None)
    return HostRegistration(url, 60.0, host.gateway.services.timeline, link)


async def test_a_host_that_does_not_let_a_client_in_is_asked_less_and_less_often(
    host: MeshFreehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, pauses = _make_client(host, host.url), list[float]()  # they are not paired

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            raise asyncio.CancelledError

    monkeypatch.setattr(client, "_pause", pause)
    monkeypatch.setattr("random.random", lambda: 1.0)
    with pytest.raises(asyncio.CancelledError):
        await client.run()
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert client.status.state == "waiting"


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


async def test_a_clock_that_is_set_does_not_decide_who_is_silent(host: MeshFreehold) -> None:
    elapsed, key = [0.0], make_key()
    add_paired(host, key, "register")
    clients = RegisteredClients(host.gateway.services.timeline, host.mesh.neighbours, 30.0, lambda: elapsed[0])
    made = await clients.register(key.public, decode(ClientFacts, {**FACTS, "image": None}))
    for ahead in (-86_400.0, 86_400.0):
        # As if it had been heard before or after the clock of this machine was set.
        clients._known[key.public] = replace(made, heard=made.heard + ahead)
        await clients.remove_silent()
        assert [one.pubkey for one in clients.list()] == [key.public]
    elapsed[0] += MISSED * 30.0 + 1
    await clients.remove_silent()
    assert clients.list() == []


async def test_a_client_says_that_it_lives_as_often_as_its_host_wants(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Otherwise the host would drop it, and it would register again, without an end."""
    async with running_mesh(tmp_path_factory.mktemp("home"), HOST) as host:
        manifest = client_manifest(host.url).replace("heartbeat = 1", "heartbeat = 3600")
        async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as client:
            await pair(host, client, gives=("register",))
            await until(lambda: _is(client, "registered"))
            assert client.mesh.registration is not None
            assert client.mesh.registration.interval == 1
            (found,) = await host.ask("GET", "/v1/mesh/clients")
            await until(lambda: _heard_after(host, found["heard"]))


@pytest.mark.parametrize(("wanted", "interval"), [(0.0001, 1.0), (-5, 1.0), (7200, 60.0), (None, 60.0), ("x", 60.0)])
async def test_a_host_cannot_keep_a_client_busy(host: MeshFreehold, wanted: object, interval: float) -> None:
    key = make_key()
    host.mesh.neighbours.add(key.public, "far", url="https://far.example", did=None, grants=(), given=(), who="test")

    async def answer(*_: object) -> dict[str, object]:
        return {"session": "s", "slots": [], "heartbeat": wanted}

    async def facts() -> ClientFacts:
        return decode(ClientFacts, {**FACTS, "image": None})

    link = HostLink(host.mesh.neighbours, answer, facts, lambda: None)
    client = HostRegistration("https://far.example", 60.0, host.gateway.services.timeline, link)
    await client._register()
    assert client.interval == interval


async def test_what_is_noted_of_a_neighbour_never_brings_back_what_was_changed_meanwhile(
    host: MeshFreehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was heard is noted while its owner takes grants back or evicts it: one waits for the other to its end."""
    key, held = make_key(), list[bool]()
    add_paired(host, key, "register")
    decode_row = neighbours._decode

    def decode_held(row: tuple[object, ...]) -> neighbours.Neighbour:
        held.append(host.mesh.neighbours._lock.locked())
        return decode_row(row)

    monkeypatch.setattr(neighbours, "_decode", decode_held)
    host.mesh.neighbours.note_seen(key.public)
    assert held == [True]


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


async def test_a_client_whose_grant_was_taken_back_has_no_place_any_more(host: MeshFreehold) -> None:
    key = make_key()
    add_paired(host, key, "register", "beads")
    answer = await host.send_signed(key, "POST", "/v1/mesh/register", json.dumps(FACTS).encode())
    beat = json.dumps({"session": answer.json()["session"]}).encode()
    await host.ask("PATCH", "/v1/mesh/neighbours/paired", {"grants": ["beads"]})
    assert await registered(host) == []
    refused = await host.send_signed(key, "POST", "/v1/mesh/heartbeat", beat)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "mesh.denied")


async def test_a_host_that_restarts_knows_its_clients(tmp_path: Path) -> None:
    key = make_key()
    async with running_mesh(tmp_path, PATIENT) as host:
        add_paired(host, key, "register")
        answer = await host.send_signed(key, "POST", "/v1/mesh/register", json.dumps(FACTS).encode())
        body = json.dumps({"session": answer.json()["session"]}).encode()
    async with running_mesh(tmp_path, PATIENT) as host:
        beat = await host.send_signed(key, "POST", "/v1/mesh/heartbeat", body)
        assert beat.status_code == 200


ABLE = '[slots]\nbeads = "local"\norchestrator = "local"\n[mesh.relay]\nenabled = true\n'


@pytest.mark.parametrize(("more", "expected"), [(ABLE, ["slots", "work", "relay"]), ("", [])])
async def test_a_client_tells_what_works_there_and_no_more(
    host: MeshFreehold, tmp_path: Path, more: str, expected: list[str]
) -> None:
    async with running_mesh(tmp_path, more + client_manifest(host.url)) as client:
        slots = client.gateway.services.slots
        await until(lambda: all(one.status.state in ("ok", "off") for one in slots.list()))
        await pair(host, client, gives=("register",))
        await until(lambda: _is(client, "registered"))
        (found,) = await host.ask("GET", "/v1/mesh/clients")
        assert found["capabilities"] == expected
