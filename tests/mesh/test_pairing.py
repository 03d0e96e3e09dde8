"""Pairing and signed requests: who is let in, and every way in which somebody else is not."""

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.mesh.relays import client_of
from tests.support.condition import DEADLINE, until
from websockets.exceptions import ConnectionClosed

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.gateway import connections
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.steady_time import SteadyClock
from freehold.mesh import http_signature, mesh
from freehold.mesh.ahead_times import AheadTimes
from freehold.mesh.http_signature import HTTP_AUTH, WINDOW, SignatureCheck, sign_request
from freehold.mesh.identity import SECRET_NAME, read_statement, sign_statement
from freehold.mesh.neighbour_signatures import NeighbourSignatures
from freehold.mesh.nostr.event import NostrEvent, sign_event
from freehold.mesh.nostr.keys import NostrKey, make_key, read_secret_key, show_key
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


async def test_who_passes_on_what_another_freehold_says_pairs_nothing(home: MeshFreehold, friend: MeshFreehold) -> None:
    """It has a code of `home`, and gives it on with an address of its own. There it answers with the words of `home`,
    so that its owner is shown the true key, and would send everything to somebody else."""
    code = read_code((await home.ask("POST", "/v1/mesh/codes", {}))["code"])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        words = {"secret": asked["secret"], "challenge": asked["challenge"]}
        answer = await home.gateway.http.post("/v1/mesh/introduction", json=words)
        assert answer.status_code == 200
        content = json.dumps({**answer.json(), "grants": ["work"]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(content), content))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as server:
        between = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        forged = PairingCode(between, code.pubkey, code.secret).write()
        for path in ("/v1/mesh/codes/read", "/v1/mesh/neighbours"):
            refused = await friend.ask("POST", path, {"code": forged}, status=401)
            assert (refused["error"]["code"], home.url in refused["error"]["message"]) == ("mesh.bad-signature", True)
    assert await friend.ask("GET", "/v1/mesh/neighbours") == []


def test_what_a_freehold_calls_itself_is_a_plain_name() -> None:
    """It is shown beside its key while the owner compares that, also on a terminal."""
    key = make_key()
    name = f"home at https://home.example\n  key      {show_key(make_key().public)}\n\x1b[8m"
    assert read_statement(sign_statement(key, name, None).as_json()).name == "home-at-https-home-example-k"


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


def test_a_clock_that_is_set_back_lets_no_request_in_a_second_time() -> None:
    """What was used is forgotten when it is too old. A clock that goes back would make it young again."""
    wall, elapsed, key, url = [time.time()], [0.0], make_key(), "https://home.example/v1/slots/beads/items"
    clock = SteadyClock(lambda: wall[0], lambda: elapsed[0])
    check = SignatureCheck(clock)

    def ask() -> NostrEvent:
        event = sign_event(key, HTTP_AUTH, "", [["u", url], ["method", "POST"]], created_at=int(clock()))
        check.check(event, "POST", url)
        check.use(event)
        return event

    first = ask()
    for _ in range(3):
        wall[0], elapsed[0] = wall[0] + WINDOW, elapsed[0] + WINDOW
        ask()
    assert first.id not in check._used
    wall[0] -= 3 * WINDOW
    with pytest.raises(FreeholdError) as refused:
        check.check(first, "POST", url)
    assert refused.value.code == "mesh.clock-skew"
    elapsed[0] += 1
    ask()  # a new request is let in all the same


async def test_a_neighbour_that_sends_too_much_leaves_room_for_the_others(
    home: MeshFreehold, friend: MeshFreehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids of requests are remembered, and there is room for so many. What is refused takes none."""
    await pair(home, friend, gives=("beads",))
    loud, url = make_key(), f"{home.url}/v1/slots/beads/items"
    home.mesh.neighbours.add(loud.public, "loud", url=None, did=None, grants=(), given=(), who="test")
    signatures = home.mesh.signatures
    monkeypatch.setattr(http_signature, "MAX_KEPT", len(signatures._check._used) + 20)
    signatures.rates = RateLimit(rate=0.001, burst=10)

    def refusal() -> str | None:
        header = sign_request(loud, "GET", url).removeprefix("Nostr ").encode()
        try:
            assert signatures.verify(header, "GET", url) is not None
        except FreeholdError as error:
            return error.code
        return None

    assert [refusal() for _ in range(50)] == [None] * 10 + ["mesh.too-many"] * 40
    assert (await home.send_signed(friend.mesh.key, "GET", "/v1/slots/beads/items")).status_code == 200


async def test_a_clock_that_is_ten_minutes_wrong_is_corrected(home: MeshFreehold, friend: MeshFreehold) -> None:
    await pair(home, friend, gives=("beads",))
    key = friend.mesh.key
    refused = await home.send_signed(key, "GET", "/v1/slots/beads/items", offset=-600)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "mesh.clock-skew")
    assert abs(int(refused.headers["freehold-time"]) - time.time()) < 60
    friend.mesh.peers._offsets[home.url] = -600
    found = await friend.mesh.peers.send(key, home.url, "GET", "/v1/slots/beads/items")
    assert (found["beads"], abs(friend.mesh.peers.offset(home.url)) < 60) == ([], True)


@pytest.mark.parametrize("how", ["evict", "take back"])
async def test_an_evicted_neighbour_is_out_at_once_with_its_streams(
    tmp_path_factory: pytest.TempPathFactory, friend: MeshFreehold, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its streams end because it is evicted, or because what it used is taken back. No check at an interval has a part."""
    monkeypatch.setattr(connections, "CHECK_INTERVAL", 3600.0)
    monkeypatch.setattr(mesh, "REVOCATION_INTERVAL", 3600.0)
    manifest = '[slots]\nevents = "local"\n[mesh]\nmode = "peer"\n'
    async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as home:
        await until(lambda: home.gateway.services.slots.get("events").status.state == "ok")
        await pair(home, friend, gives=("events",))
        key, path = friend.mesh.key, "/v1/slots/events/stream"
        headers = {"authorization": sign_request(key, "GET", home.url + path)}
        async with home.gateway.http.stream("GET", path, headers=headers) as stream:
            assert stream.status_code == 200
            if how == "evict":
                await home.ask("DELETE", "/v1/mesh/neighbours/other")
            else:
                await home.ask("PATCH", "/v1/mesh/neighbours/other", {"grants": []})
            async with asyncio.timeout(DEADLINE):
                with suppress(httpx2.RemoteProtocolError):  # it may end in the middle
                    async for _ in stream.aiter_bytes():
                        pass
        if how == "take back":
            assert (await home.send_signed(key, "GET", "/v1/slots/events")).status_code == 403
            return
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


async def test_nobody_takes_the_name_of_a_former_neighbour_by_calling_itself_so(home: MeshFreehold) -> None:
    """A slot of the manifest may still say `neighbour:laptop`."""
    first, other = make_key(), make_key()

    async def enter(key: NostrKey, name: str | None = None) -> str:
        code = read_code((await home.ask("POST", "/v1/mesh/codes", {"name": name}))["code"])
        statement = sign_statement(key, "laptop", None, code.secret).as_json()
        await home.mesh.pairings.accept(key.public, code.secret, statement, None, [], "127.0.0.1")
        found = home.mesh.neighbours.find(key.public)
        assert found is not None
        return found.name

    assert await enter(first) == "laptop"
    await home.ask("DELETE", "/v1/mesh/neighbours/laptop")
    taken = await enter(other)
    assert (taken.startswith("laptop-"), len(taken)) == (True, 13)
    assert await enter(first) == "laptop"
    await home.ask("DELETE", "/v1/mesh/neighbours/laptop")
    assert await enter(other, "laptop") == "laptop"


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


async def test_a_neighbour_that_another_process_revokes_is_out_within_a_second(
    tmp_path_factory: pytest.TempPathFactory, friend: MeshFreehold
) -> None:
    """What looks for it does so often enough; here, until its stream ends."""
    assert connections.CHECK_INTERVAL + mesh.REVOCATION_INTERVAL <= 1.0
    manifest = '[slots]\nevents = "local"\n[mesh]\nmode = "host"\n[mesh.relay]\nenabled = true\n'
    async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as home:
        await until(lambda: home.gateway.services.slots.get("events").status.state == "ok")
        await pair(home, friend, gives=("events", "register"))
        key, path = friend.mesh.key, "/v1/slots/events/stream"
        facts = b'{"version": "1"}'
        assert (await home.send_signed(key, "POST", "/v1/mesh/register", facts)).status_code == 200
        headers = {"authorization": sign_request(key, "GET", home.url + path)}
        async with (
            client_of(home, key) as relay,
            home.gateway.http.stream("GET", path, headers=headers) as stream,
        ):
            services = home.gateway.services
            program = (
                "import sys; from pathlib import Path; from freehold.identity.tokens import ApiTokens\n"
                "with ApiTokens(Path(sys.argv[1])) as tokens: assert tokens.revoke('neighbour-other')"
            )
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(services.home.identity))
            assert await other.wait() == 0
            async with asyncio.timeout(DEADLINE):
                with suppress(httpx2.RemoteProtocolError):  # it may end in the middle
                    async for _ in stream.aiter_bytes():
                        pass
            await until(lambda: home.mesh.clients.list() == [])
            with pytest.raises(ConnectionClosed):
                await relay.read("NOTHING")
        assert (await home.send_signed(key, "GET", "/v1/slots/events")).status_code == 410


async def test_a_request_of_a_clock_that_is_ahead_works_once_also_over_a_restart(home: MeshFreehold) -> None:
    """What was signed before the start is refused by its time. That of a clock which is ahead looks as if it were signed
    after it."""
    url, services = f"{home.url}/v1/slots/beads/items", home.gateway.services
    names = {"ahead": make_key(), "right": make_key()}
    for name, key in names.items():
        home.mesh.neighbours.add(key.public, name, url=None, did=None, grants=("beads",), given=(), who="test")
    path = services.home.root / "mesh" / "ahead.db"

    def header(name: str, offset: int) -> bytes:
        return sign_request(names[name], "GET", url, offset=offset).removeprefix("Nostr ").encode()

    caught, is_open = header("ahead", 45), home.mesh.signatures.verify
    assert is_open(caught, "GET", url) is not None
    assert is_open(header("right", 0), "GET", url) is not None
    for offset in (48, 54):
        times = AheadTimes(path)
        times.load(time.time())
        started = NeighbourSignatures(home.mesh.neighbours, services.tokens, {}, times)
        with pytest.raises(FreeholdError) as refused:
            started.verify(caught, "GET", url)
        assert refused.value.code == "mesh.replayed"
        assert started.verify(header("ahead", offset), "GET", url) is not None
        assert started.verify(header("right", 0), "GET", url) is not None
        times.close()
    with pytest.raises(FreeholdError) as stopped:
        started.verify(header("ahead", 58), "GET", url)
    assert stopped.value.code == "mesh.busy"


@pytest.mark.parametrize(("later", "is_kept"), [(50.0, True), (125.0, False), (-500.0, True), (-86_400.0, False)])
def test_times_that_are_over_or_of_a_clock_that_was_set_back_shut_nobody_out(
    tmp_path: Path, later: float, is_kept: bool
) -> None:
    now = 1_800_000_000.5
    for start in (now, now + later):
        times = AheadTimes(tmp_path / "ahead.db")
        times.load(start)
        times.note("neighbour", int(now) + 60, now)
        times.note("right", int(now), now)
        assert not times.was_used("right", 1)
        found = times.was_used("neighbour", int(now) + 60), times.was_used("neighbour", int(now) + 61)
        assert found == (is_kept and start != now, False)
        times.close()
