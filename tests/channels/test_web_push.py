"""Web Push: encrypted for one browser, signed for its push service, and forgotten when the browser is gone."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from tests.channels.conftest import ChannelGateway
from tests.support.condition import until
from tests.support.push_service import PushService, decode, running_push_service

from freehold.channels import web_push
from freehold.channels.push_encryption import MAX_CONTENT, Key, PushKeys, encode_url, encrypt, make_key, public_point
from freehold.channels.subscriptions import check_endpoint
from freehold.errors import FreeholdError

AUTH = bytes(range(16))


def private(text: str) -> Key:
    return ec.derive_private_key(int.from_bytes(decode(text), "big"), ec.SECP256R1())


def decrypt(body: bytes, key: Key, auth: bytes) -> bytes:
    """The other side of RFC 8291, as a browser does it."""
    salt, length = body[:16], body[20]
    sender = body[21 : 21 + length]
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
    info = b"WebPush: info\0" + public_point(key) + sender
    secret = HKDF(SHA256(), 32, auth, info).derive(key.exchange(ec.ECDH(), point))
    cipher = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
    padded = AESGCM(cipher).decrypt(nonce, body[21 + length :], None)
    return padded.rstrip(b"\0")[:-1]


def test_the_example_of_the_standard_is_encrypted_as_there() -> None:
    """RFC 8291, section 5."""
    keys = PushKeys(
        decode("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
        decode("BTBZMqHH6r4Tts7J_aSIgg"),
    )
    sender = private("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
    body = encrypt(
        b"When I grow up, I want to be a watermelon", keys, sender=sender, salt=decode("DGv6ra1nlYgDCS1FRnbzlw")
    )
    assert encode_url(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
        "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


@given(st.binary(max_size=MAX_CONTENT), st.binary(min_size=16, max_size=16))
def test_what_is_encrypted_is_read_by_its_receiver_only(content: bytes, auth: bytes) -> None:
    receiver = make_key()
    body = encrypt(content, PushKeys(public_point(receiver), auth))
    assert len(body) <= 4096
    assert decrypt(body, receiver, auth) == content


def test_more_than_a_push_service_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        encrypt(b"x" * (MAX_CONTENT + 1), PushKeys(public_point(make_key()), AUTH))


@pytest.fixture
def service() -> Iterator[PushService]:
    with running_push_service() as running:
        yield running


async def subscribe(gateway: ChannelGateway, service: PushService, path: str) -> Key:
    """As the page does it in a browser that is signed in."""
    key = make_key()
    body = {
        "endpoint": f"{service.url}/{path}",
        "p256dh": encode_url(public_point(key)),
        "auth": encode_url(AUTH),
        "label": path,
    }
    headers = gateway.gateway.browser()
    made = await gateway.gateway.http.post("/v1/channels/webpush/subscriptions", json=body, headers=headers)
    assert made.status_code == 201, made.text
    return key


async def test_every_browser_of_the_owner_gets_a_message_that_only_it_can_read(
    gateway: ChannelGateway, service: PushService
) -> None:
    keys = {path: await subscribe(gateway, service, path) for path in ("laptop", "phone")}
    await gateway.prefer("webpush", batch=0)
    session = await gateway.finish_turn("\U0001f600" * 5_000, title="A task")
    await until(lambda: len(service.pushes) == 2)
    contents: list[dict[str, Any]] = [
        json.loads(decrypt(body, keys[path.strip("/")], AUTH)) for path, body, _ in service.pushes
    ]
    assert contents[0] == contents[1]
    assert contents[0]["title"] == "Finished: A task"
    assert contents[0]["link"].endswith(f"/sessions?id={session}")
    assert len({headers["topic"] for _, _, headers in service.pushes}) == 1
    public = (await gateway.gateway.http.get("/v1/channels/webpush/key", headers=gateway.gateway.browser())).json()
    assert service.keys == {public["key"]}


async def test_a_browser_that_could_not_be_reached_for_a_moment_gets_the_message_too(
    gateway: ChannelGateway, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the one that has it does not get it twice."""
    monkeypatch.setattr(web_push, "RETRY_DELAYS", (0.01, 0.01))
    for path in ("laptop", "phone"):
        await subscribe(gateway, service, path)
    service.once["/phone"] = 503
    await gateway.post("/webpush/test")
    assert [path for path, _, _ in service.pushes] == ["/laptop", "/phone"]


async def test_a_browser_that_is_gone_is_forgotten(gateway: ChannelGateway, service: PushService) -> None:
    await subscribe(gateway, service, "laptop")
    service.status = 410
    await gateway.finish_turn("done")
    await gateway.prefer("webpush", batch=0)

    async def is_forgotten() -> bool:
        found = await gateway.gateway.http.get("/v1/channels/webpush/subscriptions", headers=gateway.headers)
        return bool(found.json() == [])

    await gateway.post("/webpush/test", status=503)
    await until(is_forgotten)
    await gateway.post("/webpush/test", status=503)
    assert "webpush: a message was refused: no browser gets messages" in await gateway.read_health()
    service.status = 201
    await subscribe(gateway, service, "phone")
    assert (await gateway.read_health()).startswith("ok")


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://10.0.0.1/push",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/push",
        "https://router/push",
        "http://push.example.com/x",
        "https://user:password@push.example.com/x",
        "file:///etc/passwd",
        "http://192.168.1.1/",
        "https://127.1/push",
        "https://0x7f.0x1/push",
        "https://2130706433/push",
        "https://localhost./push",
        "https://[::ffff:10.0.0.1]/push",
        "https://nas.local/push",
        "https://push.example.com:99999/x",
        "https://push.example.com\\@127.0.0.1/x",
        "https://[/x",
    ],
)
def test_a_push_is_sent_to_no_other_place_of_the_owners_network(endpoint: str) -> None:
    with pytest.raises(FreeholdError, match="push service"):
        check_endpoint(endpoint)


@pytest.mark.parametrize("address", ["127.0.0.1", "192.168.1.1", "169.254.169.254", "::1", "fd00::1"])
async def test_a_name_that_leads_into_the_owners_network_gets_no_push(
    gateway: ChannelGateway, service: PushService, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """One public address beside it makes it no better."""
    key = make_key()
    body = {
        "endpoint": f"https://push.example.com:{service.port}/x",
        "p256dh": encode_url(public_point(key)),
        "auth": encode_url(AUTH),
    }
    path = "/v1/channels/webpush/subscriptions"
    made = await gateway.gateway.http.post(path, json=body, headers=gateway.gateway.browser())
    assert made.status_code == 201
    loop = asyncio.get_running_loop()
    resolve = loop.getaddrinfo

    async def lead_here(host: object, port: object, **more: Any) -> Any:
        if host != "push.example.com":
            return await resolve(host, port, **more)  # type: ignore[arg-type]
        return [(0, 0, 0, "", (one, service.port)) for one in ("8.8.8.8", address)]

    monkeypatch.setattr(loop, "getaddrinfo", lead_here)
    answer = await gateway.post("/webpush/test", status=503)
    assert "leads into this network" in answer["error"]["message"]
    assert not service.pushes
    assert not service.mistakes


def test_the_push_services_of_browsers_are_accepted() -> None:
    for endpoint in ("https://fcm.googleapis.com/fcm/send/x", "https://updates.push.services.mozilla.com/wpush/v2/x"):
        check_endpoint(endpoint)


async def test_a_token_cannot_subscribe_and_wrong_keys_are_refused(
    gateway: ChannelGateway, service: PushService
) -> None:
    body = {"endpoint": f"{service.url}/x", "p256dh": "A" * 87, "auth": encode_url(AUTH)}
    path = "/v1/channels/webpush/subscriptions"
    assert (await gateway.gateway.http.post(path, json=body, headers=gateway.headers)).status_code == 403
    refused = await gateway.gateway.http.post(path, json=body, headers=gateway.gateway.browser())
    assert refused.status_code == 400
