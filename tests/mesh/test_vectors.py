"""All published test vectors of NIP-44 and BIP-340, valid and invalid, and the examples of NIP-17, NIP-59 and NIP-98.

Where they come from is in `vectors/README.md`.
"""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from freehold.mesh.nostr import encryption
from freehold.mesh.nostr.direct_message import unwrap_message
from freehold.mesh.nostr.encryption import MAX_TEXT, BadCipherText, decrypt, encrypt, padded_length
from freehold.mesh.nostr.event import BadEvent, read_event, read_signed_event, sign_event
from freehold.mesh.nostr.keys import NostrKey, read_secret_key, verify_signature

FOLDER = Path(__file__).parent / "vectors"
NIP_44 = (FOLDER / "nip44.vectors.json").read_bytes()
VECTORS: dict[str, dict[str, Any]] = json.loads(NIP_44)["v2"]
VALID, INVALID = VECTORS["valid"], VECTORS["invalid"]
MESSAGE_KEYS = VALID["get_message_keys"]
NIPS: dict[str, dict[str, Any]] = json.loads((FOLDER / "nips.json").read_bytes())
with (FOLDER / "bip340.csv").open(encoding="utf-8", newline="") as lines:
    SIGNATURES = list(csv.DictReader(lines))


def key_of(secret: str) -> NostrKey:
    return NostrKey(bytes.fromhex(secret))


def test_they_are_those_that_nip_44_names_and_all_of_them() -> None:
    """The NIP names the digest of the file."""
    assert hashlib.sha256(NIP_44).hexdigest() == "269ed0f69e4c192512cc779e78c555090cebc7c785b609e338a62afc3ce25040"
    assert {name: len(VALID[name]) for name in VALID if name != "get_message_keys"} == {
        "get_conversation_key": 35,
        "calc_padded_len": 24,
        "encrypt_decrypt": 10,
        "encrypt_decrypt_long_msg": 3,
    }
    assert len(MESSAGE_KEYS["keys"]) == 32
    assert {name: len(INVALID[name]) for name in INVALID} == {
        "encrypt_msg_lengths": 4,
        "get_conversation_key": 8,
        "decrypt": 12,
    }
    assert len(SIGNATURES) == 19


@pytest.mark.parametrize("one", VALID["get_conversation_key"])
def test_two_keys_share_the_conversation_key_of_nip_44(one: dict[str, str]) -> None:
    assert key_of(one["sec1"]).share_with(one["pub2"]).hex() == one["conversation_key"]


@pytest.mark.parametrize("one", MESSAGE_KEYS["keys"])
def test_a_nonce_gives_the_message_keys_of_nip_44(one: dict[str, str]) -> None:
    conversation = bytes.fromhex(MESSAGE_KEYS["conversation_key"])
    found = [part.hex() for part in encryption._message_keys(conversation, bytes.fromhex(one["nonce"]))]
    assert found == [one["chacha_key"], one["chacha_nonce"], one["hmac_key"]]


@pytest.mark.parametrize(("size", "padded"), VALID["calc_padded_len"])
def test_padding_has_the_length_of_nip_44(size: int, padded: int) -> None:
    assert padded_length(size) == padded


@pytest.mark.parametrize("one", VALID["encrypt_decrypt"])
def test_a_conversation_gives_the_payloads_of_nip_44(one: dict[str, str]) -> None:
    first, second = key_of(one["sec1"]), key_of(one["sec2"])
    conversation = first.share_with(second.public)
    assert conversation == second.share_with(first.public) == bytes.fromhex(one["conversation_key"])
    assert encrypt(conversation, one["plaintext"], bytes.fromhex(one["nonce"])) == one["payload"]
    assert decrypt(conversation, one["payload"]) == one["plaintext"]


@pytest.mark.parametrize("one", VALID["encrypt_decrypt_long_msg"], ids=lambda one: str(one["repeat"]))
def test_long_texts_give_the_payloads_of_nip_44(one: dict[str, Any]) -> None:
    text = one["pattern"] * one["repeat"]
    assert hashlib.sha256(text.encode()).hexdigest() == one["plaintext_sha256"]
    conversation = bytes.fromhex(one["conversation_key"])
    payload = encrypt(conversation, text, bytes.fromhex(one["nonce"]))
    assert hashlib.sha256(payload.encode()).hexdigest() == one["payload_sha256"]
    assert decrypt(conversation, payload) == text


@pytest.mark.parametrize("length", INVALID["encrypt_msg_lengths"])
def test_a_length_that_nip_44_does_not_have_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"1 to {MAX_TEXT}"):
        encrypt(bytes(32), "x" * length)


@pytest.mark.parametrize("one", INVALID["get_conversation_key"], ids=lambda one: one["note"])
def test_a_pair_of_keys_that_nip_44_refuses_shares_nothing(one: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r".*"):
        key_of(one["sec1"]).share_with(one["pub2"])


@pytest.mark.parametrize("one", INVALID["decrypt"], ids=lambda one: one["note"])
def test_a_payload_that_nip_44_refuses_is_not_opened(one: dict[str, str]) -> None:
    with pytest.raises(BadCipherText):
        decrypt(bytes.fromhex(one["conversation_key"]), one["payload"])


@pytest.mark.parametrize("one", SIGNATURES, ids=lambda one: one["comment"] or one["index"])
def test_a_signature_is_taken_or_refused_as_bip_340_says(one: dict[str, str]) -> None:
    found = verify_signature(one["public key"].lower(), bytes.fromhex(one["message"]), one["signature"].lower())
    assert found is (one["verification result"] == "TRUE")


@pytest.mark.parametrize("one", [one for one in SIGNATURES if one["secret key"]], ids=lambda one: one["index"])
def test_a_secret_key_has_the_public_half_of_bip_340_and_signs_for_it(one: dict[str, str]) -> None:
    key, digest = key_of(one["secret key"]), hashlib.sha256(bytes.fromhex(one["message"])).digest()
    assert key.public == one["public key"].lower()
    assert verify_signature(key.public, digest, key.sign(digest))


@pytest.mark.parametrize(("who", "wrap"), [("receiver", "to_receiver"), ("sender", "to_sender")])
def test_the_gift_wraps_of_nip_17_hold_its_message(who: str, wrap: str) -> None:
    """One is for the receiver and one for the sender. Both hold the same message."""
    example = NIPS["nip17"]
    sender, receiver = (read_secret_key(example[one]).public for one in ("sender", "receiver"))
    found = unwrap_message(read_secret_key(example[who]), read_signed_event(json.dumps(example[wrap])))
    assert (found.pubkey, found.kind, found.content) == (sender, 14, "Hola, que tal?")
    assert found.tags == (("p", receiver),)


def test_the_gift_wrap_of_nip_59_holds_its_seal_and_its_rumor() -> None:
    example = NIPS["nip59"]
    author, receiver = key_of(example["author"]), key_of(example["receiver"])
    wrap = read_signed_event(json.dumps(example["wrap"]))
    assert (wrap.pubkey, wrap.tag("p")) == (key_of(example["wrapper"]).public, receiver.public)
    assert json.loads(decrypt(receiver.share_with(wrap.pubkey), wrap.content)) == example["seal"]
    rumor = unwrap_message(receiver, wrap)
    assert {**vars(rumor), "tags": [list(tag) for tag in rumor.tags]} == example["rumor"]
    assert rumor.pubkey == author.public


def test_the_example_of_nip_98_is_refused_because_its_id_is_not_that_of_its_content() -> None:
    """Its signature is for the id that it names, and nothing says that this id is for this request."""
    event = NIPS["nip98"]["event"]
    assert verify_signature(event["pubkey"], bytes.fromhex(event["id"]), event["sig"])
    with pytest.raises(BadEvent, match="its id is not that of its content"):
        read_event(event)
    key = NostrKey((1).to_bytes(32, "big"))
    signed = sign_event(key, event["kind"], event["content"], event["tags"], created_at=event["created_at"])
    assert read_event(signed.as_json()).is_signed
