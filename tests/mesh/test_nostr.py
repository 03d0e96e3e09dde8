"""Keys, events, encryption and direct messages, and the same by another implementation. All vectors are in `test_vectors`."""

import base64
import json
from dataclasses import replace

import nostr_sdk as sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.mesh.nostr import encryption
from freehold.mesh.nostr.bech32 import decode_key, encode_key
from freehold.mesh.nostr.direct_message import unwrap_message, wrap_message
from freehold.mesh.nostr.encryption import BadCipherText, decrypt, encrypt, padded_length
from freehold.mesh.nostr.event import BadEvent, read_event, read_signed_event, sign_event
from freehold.mesh.nostr.filter import BadFilter, read_filter
from freehold.mesh.nostr.keys import NostrKey, make_key, read_public_key, read_secret_key, show_key, verify_signature

ONE, TWO = NostrKey((1).to_bytes(32, "big")), NostrKey((2).to_bytes(32, "big"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)


def test_keys_are_written_as_nip_19_writes_them() -> None:
    npub = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
    public = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"
    nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
    secret = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
    assert (read_public_key(npub), show_key(public)) == (public, npub)
    assert (decode_key("nsec", nsec).hex(), encode_key("nsec", bytes.fromhex(secret))) == (secret, nsec)
    assert read_secret_key(nsec).export() == nsec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "npub1",
        "npub1" + "q" * 58,
        "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe4",
        "0" * 64,
        "x" * 200,
    ],
)
def test_what_is_no_secret_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(FreeholdError) as error:
        read_secret_key(text)
    assert error.value.code == "mesh.bad-key"
    assert not text or text not in error.value.message


def test_a_key_shows_its_public_half_only() -> None:
    key = make_key()
    assert key.export() not in repr(key)
    assert show_key(key.public) in repr(key)


def test_signatures_are_those_of_bip_340() -> None:
    digest = bytes.fromhex("243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89")
    public = "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659"
    signature = (
        "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de3341"
        "8906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a"
    )
    assert verify_signature(public, digest, signature)
    assert not verify_signature(public, digest, signature[:-1] + "b")
    assert not verify_signature("zz", digest, signature)


def test_encryption_gives_the_vectors_of_nip_44() -> None:
    conversation = ONE.share_with(TWO.public)
    assert conversation.hex() == "c41c775356fd92eadc63ff5a0dc1da211b268cbea22316767095b2871ea1412d"
    assert TWO.share_with(ONE.public) == conversation
    payload = (
        "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABee0G5VSK0/9YypIObAtDKfYEAjD35uVkHyB0F4DwrcNaCXlCWZKaArsGrY6M9wnu"
        "TMxWfp1RTN9Xga8no+kF5Vsb"
    )
    assert encrypt(conversation, "a", (1).to_bytes(32, "big")) == payload
    assert decrypt(conversation, payload) == "a"


def test_padding_is_that_of_nip_44() -> None:
    table = {16: 32, 32: 32, 33: 64, 65: 96, 100: 128, 200: 224, 320: 320, 383: 384, 515: 640, 900: 1024, 1020: 1024}
    assert {size: padded_length(size) for size in table} == table


@pytest.mark.parametrize("public", ["f" * 64, "1234567890abcdef" * 4, "0" * 64])
def test_a_key_that_is_no_point_shares_nothing(public: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        ONE.share_with(public)


def test_what_was_changed_does_not_open() -> None:
    conversation = ONE.share_with(TWO.public)
    sealed = encrypt(conversation, "a secret")
    for changed in (sealed[:-4] + "AAAA", "B" + sealed[1:], "", "#" + sealed[1:], sealed * 2000, sealed[:100]):
        with pytest.raises(BadCipherText):
            decrypt(conversation, changed)
    with pytest.raises(BadCipherText):
        decrypt(ONE.share_with(make_key().public), sealed)


@pytest.mark.parametrize(
    ("version", "padded"),
    [
        (2, b"\0\0" + bytes(32)),
        (2, b"\0\1a" + bytes(30)),
        (2, b"\0\1a" + bytes(63)),
        (2, b"\0\1a" + bytes(30) + b"x"),
        (2, b"\0\x21" + b"a" * 32),
        (2, b"\xff\xff" + b"a" * 32),
        (2, b"\0\1\xff" + bytes(31)),
        (1, b"\0\1a" + bytes(31)),
        (3, b"\0\1a" + bytes(31)),
    ],
)
def test_what_the_other_side_has_written_wrongly_does_not_open(version: int, padded: bytes) -> None:
    """Whoever has the key can authenticate anything: no size, too little or too much padding, padding that is not zero,
    more than there is, and what is no text."""
    conversation, nonce = ONE.share_with(TWO.public), bytes(32)
    key, start, mac = encryption._message_keys(conversation, nonce)
    sealed = encryption._apply_cipher(key, start, padded)
    payload = bytes([version]) + nonce + sealed + encryption._authenticate(mac, nonce, sealed)
    with pytest.raises(BadCipherText):
        decrypt(conversation, base64.b64encode(payload).decode())


@pytest.mark.parametrize("length", [0, 65_536, 100_000])
def test_a_text_of_a_length_that_nip_44_does_not_have_is_not_encrypted(length: int) -> None:
    conversation = ONE.share_with(TWO.public)
    with pytest.raises(ValueError, match="1 to 65535"):
        encrypt(conversation, "x" * length)
    assert decrypt(conversation, encrypt(conversation, "x" * 65_535)) == "x" * 65_535


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_another_implementation_reads_what_we_write_and_the_other_way_round(text: str) -> None:
    ours, theirs = make_key(), sdk.Keys.generate()
    other = theirs.public_key().to_hex()
    assert (
        sdk.nip44_decrypt(theirs.secret_key(), sdk.PublicKey.parse(ours.public), encrypt(ours.share_with(other), text))
        == text
    )
    back = sdk.nip44_encrypt(theirs.secret_key(), sdk.PublicKey.parse(ours.public), text, sdk.Nip44Version.V2)
    assert decrypt(ours.share_with(other), back) == text
    event = sign_event(ours, 1, text, [["t", text]])
    assert sdk.Event.from_json(json.dumps(event.as_json())).verify()
    assert read_signed_event(json.dumps(event.as_json())) == event


def test_a_direct_message_opens_for_its_receiver_only_and_names_its_author() -> None:
    sender, receiver, stranger = make_key(), make_key(), make_key()
    wrap = wrap_message(sender, receiver.public, "hello")
    assert wrap.pubkey not in (sender.public, receiver.public)
    found = unwrap_message(receiver, wrap)
    assert (found.pubkey, found.content, found.kind) == (sender.public, "hello", 14)
    with pytest.raises(BadEvent):
        unwrap_message(stranger, wrap)


def test_direct_messages_of_another_implementation_are_read() -> None:
    ours, theirs = make_key(), sdk.Keys.generate()
    wrap = sdk.nip17_make_private_msg(theirs, sdk.PublicKey.parse(ours.public), "from there")
    assert unwrap_message(ours, read_signed_event(wrap.as_json())).content == "from there"
    own = wrap_message(ours, theirs.public_key().to_hex(), "from here")
    gift = sdk.UnwrappedGift.from_gift_wrap(theirs, sdk.Event.from_json(json.dumps(own.as_json())))
    assert gift.rumor().content() == "from here"


def test_a_seal_of_one_key_cannot_hold_the_words_of_another() -> None:
    liar, victim, receiver = make_key(), make_key(), make_key()
    true = wrap_message(victim, receiver.public, "pay him")
    seal_text = decrypt(receiver.share_with(true.pubkey), true.content)
    rumor = decrypt(receiver.share_with(victim.public), json.loads(seal_text)["content"])
    seal = sign_event(liar, 13, encrypt(liar.share_with(receiver.public), rumor))
    once = make_key()
    wrap = sign_event(
        once, 1059, encrypt(once.share_with(receiver.public), json.dumps(seal.as_json())), [["p", receiver.public]]
    )
    with pytest.raises(BadEvent, match="another author"):
        unwrap_message(receiver, wrap)


@pytest.mark.parametrize(
    "change",
    [
        {"content": "other"},
        {"id": "0" * 64},
        {"pubkey": "A" * 64},
        {"created_at": True},
        {"created_at": -1},
        {"kind": 70_000},
        {"tags": [["a", 1]]},
        {"tags": [[]] * 3000},
        {"content": "x" * 70_000},
        {"content": "\ud800"},
        {"more": 1},
        {"sig": "00"},
    ],
)
def test_an_event_that_is_not_exactly_one_is_refused(change: dict[str, object]) -> None:
    event = sign_event(make_key(), 1, "x").as_json()
    with pytest.raises(BadEvent):
        read_event({**event, **change})


def test_a_signature_of_another_event_is_not_one() -> None:
    key = make_key()
    one, other = sign_event(key, 1, "x"), sign_event(key, 1, "y")
    assert not replace(one, sig=other.sig).is_signed


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"authors": ["x"]},
        {"kinds": [True]},
        {"limit": -1},
        {"search": "x"},
        {"#e": [1]},
        {"##": []},
        {"ids": ["0" * 64] * 501},
        {f"#{name}": ["x"] for name in "abcdef"},
    ],
)
def test_a_filter_that_is_not_understood_is_refused(value: object) -> None:
    with pytest.raises(BadFilter):
        read_filter(value)


def test_a_filter_matches_what_it_says() -> None:
    event = sign_event(ONE, 7, "x", [["p", "someone"]], created_at=100)
    matching: list[object] = [{}, {"kinds": [7]}, {"authors": [ONE.public]}, {"#p": ["someone", "else"]}]
    for wanted in [*matching, {"since": 100, "until": 100}]:
        assert read_filter(wanted).matches(event), wanted
    others: list[object] = [{"kinds": []}, {"authors": [TWO.public]}, {"#p": ["else"]}, {"#e": []}, {"since": 101}]
    for wanted in [*others, {"until": 99}]:
        assert not read_filter(wanted).matches(event), wanted
