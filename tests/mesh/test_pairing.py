"""Pairing and signed requests: who is let in, and every way in which somebody else is not."""

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.support.condition import until

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.mesh.http_signature import sign_request
from freehold.mesh.identity import SECRET_NAME, sign_statement
from freehold.mesh.nostr.keys import make_key, read_secret_key, show_key
from freehold.mesh.pairing import PairingCode, read_code

BEADS = '[slots]\nbeads = "local"\n[mesh]\nmode = "peer"\n'


@pytest.fixture
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home"), BEADS) as running:
        await until(lambda: running.gateway.services.slots.beads.status.state == "ok")
        yield running


@pytest.fixture
async def friend(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home")) as running:
        yield running


async def test_the_key_is_made_once_and_kept_in_the_vault(tmp_path: Path) -> None:
    async with running_mesh(tmp_path) as first:
        npub = (await first.ask("GET", "/v1/mesh"))["npub"]
        stored = Vault(first.gateway.services.home.vault).get(SECRET_NAME).reveal()
    assert show_key(read_secret_key(stored).public) == npub
    async with running_mesh(tmp_path) as second:
        assert (await second.ask("GET", "/v1/mesh"))["npub"] == npub
        own = make_key()
        replaced = await second.ask("POST", "/v1/mesh/key", {"secret_key": own.export()})
        assert replaced["npub"] == show_key(own.public)
        events = second.gateway.services.timeline.read(kinds=["mesh.key_replaced"])
        assert own.export() not in json.dumps(dict(events[-1].data))


async def test_two_freeholds_pair_by_a_code_and_each_shows_the_key_of_the_other(
    home: MeshFreehold, friend: MeshFreehold
) -> None:
    code = await home.ask("POST", "/v1/mesh/codes", {"grants": ["beads"], "name": "friend"})
    shown = await friend.ask("POST", "/v1/mesh/codes/read", {"code": code["code"]})
    assert (shown["npub"], shown["url"]) == (code["npub"], home.url)
    made = await friend.ask("POST", "/v1/mesh/neighbours", {"code": code["code"], "name": "home"})
    assert (made["name"], made["npub"], made["given"], made["grants"]) == ("home", code["npub"], ["beads"], [])
    (known,) = await home.ask("GET", "/v1/mesh/neighbours")
    assert (known["name"], known["npub"], known["grants"]) == ("friend", show_key(friend.mesh.key.public), ["beads"])
    assert known["url"] == friend.url
    again = await friend.ask("POST", "/v1/mesh/neighbours", {"code": code["code"]}, status=410)
    assert again["error"]["code"] == "mesh.code-expired"


async def test_a_code_of_another_key_than_its_freehold_has_pairs_nothing(
    home: MeshFreehold, friend: MeshFreehold
) -> None:
    code = read_code((await home.ask("POST", "/v1/mesh/codes", {}))["code"])
    forged = PairingCode(code.url, make_key().public, code.secret).write()
    for path in ("/v1/mesh/codes/read", "/v1/mesh/neighbours"):
        refused = await friend.ask("POST", path, {"code": forged}, status=401)
        assert refused["error"]["code"] == "mesh.bad-signature"
    assert await friend.ask("GET", "/v1/mesh/neighbours") == []


@pytest.mark.parametrize("text", ["x", "freehold-pair:", "freehold-pair:####", "freehold-pair:" + "W" * 3000])
async def test_what_is_no_code_is_refused(friend: MeshFreehold, text: str) -> None:
    refused = await friend.ask("POST", "/v1/mesh/neighbours", {"code": text}, status=400 if len(text) <= 2000 else 422)
    assert refused["error"]["code"] in ("mesh.bad-value", "request.invalid")


def test_a_code_leads_to_https_or_to_this_machine() -> None:
    for url in (
        "http://example.com",
        "ftp://localhost",
        "https://a@b.example",
        "https://b.example/path",
        "file:///etc",
    ):
        with pytest.raises(FreeholdError):
            read_code(PairingCode(url, make_key().public, "s").write())
    assert read_code(PairingCode("https://b.example/", make_key().public, "s").write()).url == "https://b.example"


async def test_a_stranger_reads_nothing_of_the_mesh(home: MeshFreehold) -> None:
    stranger = make_key()
    for method, path in (("GET", "/v1/mesh"), ("GET", "/v1/mesh/neighbours"), ("GET", "/v1/slots/beads/items")):
        assert (await home.send_signed(stranger, method, path)).status_code == 401
        assert (await home.gateway.http.request(method, path)).status_code == 401
    answer = await home.gateway.http.post("/v1/mesh/introduction", json={"secret": "guess", "challenge": "x"})
    assert (answer.status_code, home.mesh.key.public in answer.text) == (410, False)


async def test_a_neighbour_reaches_what_it_was_given_and_nothing_else(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    key = friend.mesh.key
    body = json.dumps({"title": "Mend the roof"}).encode()
    made = await home.send_signed(key, "POST", "/v1/slots/beads/items", body)
    assert made.status_code == 201, made.text
    assert (await home.send_signed(key, "GET", "/v1/slots/beads/items?limit=5")).json()["beads"][0][
        "title"
    ] == "Mend the roof"
    for method, path in (
        ("GET", "/v1/mesh"),
        ("GET", "/v1/timeline"),
        ("GET", "/v1/sessions"),
        ("GET", "/v1/secrets"),
        ("GET", "/v1/slots/memory/entries"),
        ("POST", "/v1/mesh/codes"),
        ("GET", "/v1/mesh/neighbours"),
    ):
        assert (await home.send_signed(key, method, path)).status_code in (403, 404), path


async def test_a_signature_is_for_one_request_once(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    key, path, body = friend.mesh.key, "/v1/slots/beads/items", json.dumps({"title": "One"}).encode()
    http = home.gateway.http

    async def send(header: str, method: str = "POST", target: str = path, content: bytes = body) -> str:
        headers = {"authorization": header, "content-type": "application/json"}
        answer = await http.request(method, target, content=content, headers=headers)
        return "ok" if answer.is_success else str(answer.json()["error"]["code"])

    header = sign_request(key, "POST", home.url + path, body)
    assert await send(header) == "ok"
    assert await send(header) == "mesh.replayed"
    assert await send(sign_request(key, "POST", home.url + path, b"other")) == "request.bad-signature"
    assert await send(sign_request(key, "POST", home.url + path)) == "request.bad-signature"
    assert await send(sign_request(key, "PUT", home.url + path, body)) == "mesh.bad-signature"
    assert await send(sign_request(key, "POST", home.url + path + "?x=1", body)) == "mesh.bad-signature"
    assert await send(sign_request(key, "POST", "https://evil.example" + path, body)) == "mesh.bad-signature"
    assert len((await home.ask("GET", "/v1/slots/beads/items"))["beads"]) == 1


async def test_a_forged_signature_is_refused(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    path = "/v1/slots/beads/items"
    header = sign_request(friend.mesh.key, "GET", home.url + path)
    event = json.loads(base64.b64decode(header[6:]))
    forged = json.loads(base64.b64decode(sign_request(make_key(), "GET", home.url + path)[6:]))
    changes: list[object] = [
        {**event, "sig": forged["sig"]},
        {**event, "content": "x"},
        {**forged, "pubkey": event["pubkey"]},
        "x",
        [],
    ]
    for changed in changes:
        value = base64.b64encode(json.dumps(changed).encode()).decode()
        answer = await home.gateway.http.get(path, headers={"authorization": f"Nostr {value}"})
        assert answer.status_code == 401, changed


async def test_a_clock_that_is_ten_minutes_wrong_is_corrected(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    key = friend.mesh.key
    refused = await home.send_signed(key, "GET", "/v1/slots/beads/items", offset=-600)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "mesh.clock-skew")
    assert abs(int(refused.headers["freehold-time"]) - time.time()) < 60
    friend.mesh.peers._offsets[home.url] = -600
    found = await friend.mesh.peers.send(key, home.url, "GET", "/v1/slots/beads/items")
    assert (found["beads"], abs(friend.mesh.peers.offset(home.url)) < 60) == ([], True)


async def test_an_evicted_neighbour_is_out_at_once_with_its_streams(
    tmp_path_factory: pytest.TempPathFactory, friend: MeshFreehold
) -> None:
    manifest = '[slots]\nevents = "local"\n[mesh]\nmode = "peer"\n'
    async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as home:
        await until(lambda: home.gateway.services.slots.get("events").status.state == "ok")
        await pair(home, friend, gives=("events",))
        key, path = friend.mesh.key, "/v1/slots/events/stream"
        headers = {"authorization": sign_request(key, "GET", home.url + path)}
        async with home.gateway.http.stream("GET", path, headers=headers) as stream:
            assert stream.status_code == 200
            await home.ask("DELETE", "/v1/mesh/neighbours/other")
            async with asyncio.timeout(30):
                with pytest.raises(Exception, match=r".*"):  # noqa: PT012 - it ends in the middle
                    async for _ in stream.aiter_bytes():
                        pass
                    raise EOFError
        answer = await home.send_signed(key, "GET", "/v1/slots/events")
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "mesh.evicted")
        assert all(one.name.startswith("owner-") for one in home.gateway.services.tokens.list())
        recorded = home.gateway.services.timeline.read(kinds=["mesh.evicted"])[-1]
        assert recorded.data["npub"] == show_key(key.public)
        # Pairing again lets it in again.
        await pair(home, friend, gives=("events",))
        assert (await home.send_signed(key, "GET", "/v1/slots/events")).status_code == 200


async def test_revoking_its_token_is_the_same(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    assert home.gateway.services.tokens.revoke("neighbour-other")
    assert (await home.send_signed(friend.mesh.key, "GET", "/v1/slots/beads/items")).status_code == 410


async def test_grants_can_be_taken_back(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    changed = await home.ask("PATCH", "/v1/mesh/neighbours/other", {"grants": []})
    assert changed["grants"] == []
    assert (await home.send_signed(friend.mesh.key, "GET", "/v1/slots/beads/items")).status_code == 403


async def test_a_neighbour_that_names_the_did_of_another_is_not_believed(home: MeshFreehold) -> None:
    liar = make_key()
    code = read_code((await home.ask("POST", "/v1/mesh/codes", {}))["code"])
    claimed = sign_statement(liar, "liar", "did:web:victim.invalid", code.secret).as_json()
    body = json.dumps({"secret": code.secret, "challenge": "c", "statement": claimed}).encode()
    assert (await home.send_signed(liar, "POST", "/v1/mesh/pair", body)).status_code == 200
    (known,) = await home.ask("GET", "/v1/mesh/neighbours")
    assert (known["did"], known["proof"]) == ("did:web:victim.invalid", "claimed")


async def test_a_statement_of_somebody_else_pairs_nobody(home: MeshFreehold, friend: MeshFreehold) -> None:
    liar = make_key()
    code = read_code((await home.ask("POST", "/v1/mesh/codes", {}))["code"])
    for statement in (friend.mesh.make_statement(code.secret).as_json(), sign_statement(liar, "liar", None).as_json()):
        body = json.dumps({"secret": code.secret, "challenge": "c", "statement": statement}).encode()
        answer = await home.send_signed(liar, "POST", "/v1/mesh/pair", body)
        assert answer.json()["error"]["code"] == "mesh.bad-signature"
    assert await home.ask("GET", "/v1/mesh/neighbours") == []


async def test_a_neighbour_elsewhere_cannot_name_an_address_of_this_machine(home: MeshFreehold) -> None:
    for address, known in (("127.0.0.1", "http://localhost:9"), ("203.0.113.5", None)):
        key = make_key()
        code = read_code((await home.ask("POST", "/v1/mesh/codes", {}))["code"])
        statement = sign_statement(key, "far", None, code.secret).as_json()
        await home.mesh.pairings.accept(key.public, code.secret, statement, "http://localhost:9", [], address)
        found = home.mesh.neighbours.find(key.public)
        assert found is not None
        assert found.url == known


async def test_a_signed_body_that_is_too_large_is_refused_while_it_is_read(
    home: MeshFreehold, friend: MeshFreehold
) -> None:
    await pair(home, friend, gives=("register",))
    key, path = friend.mesh.key, "/v1/mesh/heartbeat"

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    for method in ("POST", "GET"):
        target = path if method == "POST" else "/v1/mesh/cards"
        headers = {"authorization": sign_request(key, method, home.url + target)}
        answer = await home.gateway.http.request(method, target, content=endless(), headers=headers)
        assert answer.status_code in (400, 401, 413), answer.text


async def test_guessing_codes_is_slowed_down(home: MeshFreehold) -> None:
    found = set()
    for _ in range(30):
        answer = await home.gateway.http.post("/v1/mesh/introduction", json={"secret": "guess", "challenge": "x"})
        found.add(answer.status_code)
    assert found == {410, 429}


async def test_the_number_of_requests_of_a_neighbour_is_bounded(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    home.mesh.signatures.rates._burst, home.mesh.signatures.rates._rate = 5, 0.001
    found = [(await home.send_signed(friend.mesh.key, "GET", "/v1/slots/beads/items")).status_code for _ in range(7)]
    assert (found[0], found[-1]) == (200, 429)
    assert await home.ask("GET", "/v1/mesh/neighbours")


def test_a_mesh_that_is_off_loads_no_cryptography() -> None:
    program = (
        "import sys; from freehold.features import list_features, load_reference as load\n"
        "for one in list_features():\n"
        "    [load(r) for r in ((one.routes,) if isinstance(one.routes, str) else one.routes or ())]\n"
        "    one.service and load(one.service); one.health and load(one.health)\n"
        "assert 'freehold.mesh.routes' in sys.modules\n"
        "print([name for name in sys.modules if name.startswith(('coincurve', 'freehold.mesh.mesh', 'freehold.mesh.relay_client'))])"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


async def test_a_mesh_that_is_off_answers_nothing(tmp_path: Path) -> None:
    from tests.gateway.running_gateway import running_gateway

    async with running_gateway(tmp_path) as gateway:
        answer = await gateway.http.get("/v1/mesh", headers=gateway.token("admin"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "mesh.disabled")
        header = sign_request(make_key(), "GET", f"{gateway.url}/v1/mesh")
        assert (await gateway.http.get("/v1/mesh", headers={"authorization": header})).status_code == 401
        assert gateway.services.vault.list() == []
