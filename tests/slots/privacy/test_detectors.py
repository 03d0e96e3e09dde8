"""What the privacy filter finds, what it leaves alone, and what hiding does not help against."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.observe.secrets import MASK, mask_secrets
from freehold.slots.privacy.detectors import MachineUser, find_private
from freehold.slots.privacy.shadow import cast_shadow

KEY = "sk-abcdefghijklmnop1234"


def found(text: str, user: MachineUser = MachineUser()) -> list[tuple[str, str]]:  # noqa: B008
    return [(part.kind, part.value) for part in find_private(text, user)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("mail anna.smith+work@example.co.uk, please", "mail", "anna.smith+work@example.co.uk"),
        ("<o'neil@example.ie>", "mail", "o'neil@example.ie"),
        ("call +49 171 2345678 now", "phone", "+49 171 2345678"),
        ("call (555) 123-4567", "phone", "(555) 123-4567"),
        ("call 555-123-4567.", "phone", "555-123-4567"),
        ("Tel. 0171/2345678", "phone", "0171/2345678"),
        ("fax 0049 30 1234567", "phone", "0049 30 1234567"),
        ("card 4111 1111 1111 1111 exp 12/29", "card", "4111 1111 1111 1111"),
        ("amex 378282246310005", "card", "378282246310005"),
        ("to DE89 3704 0044 0532 0130 00 today", "iban", "DE89 3704 0044 0532 0130 00"),
        ("GB82WEST12345698765432", "iban", "GB82WEST12345698765432"),
        ("I live at 12 Mill Lane, Oxford", "address", "12 Mill Lane, Oxford"),
        ("Hauptstraße 5, 10115 Berlin", "address", "Hauptstraße 5, 10115 Berlin"),
        ("see /home/anna/notes", "address", "anna"),
        ("C:\\Users\\Anna.S\\x", "address", "Anna.S"),
        (f"key {KEY}", "secret", KEY),
        ("AKIAIOSFODNN7EXAMPLE", "secret", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_abcdefghijklmnopqrst0123456789ABCD", "secret", "ghp_abcdefghijklmnopqrst0123456789ABCD"),
        ("xoxb-123456789012-abcdefGHIJKL", "secret", "xoxb-123456789012-abcdefGHIJKL"),
        ("123456789:AAabcdefghijklmnopqrstuvwxyz1234567", "secret", "123456789:AAabcdefghijklmnopqrstuvwxyz1234567"),
        ("postgres://app:hunter2@db/x", "secret", "hunter2"),
        ("the password is hunter2x!", "secret", "hunter2x"),
        ('api_key = "a1b2c3d4"', "secret", "a1b2c3d4"),
        ("PIN: 4711", "secret", "4711"),
        ("passcode is 88321x", "secret", "88321x"),
        ("use 8Jf3kLq9ZxT2vBnM4wRy7PdS for it", "secret", "8Jf3kLq9ZxT2vBnM4wRy7PdS"),
    ],
)
def test_private_data_is_found_exactly(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "commit 9f3c2ab0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-oRBIsbsVYUVWYLTVVPOCbFUiJTuVTSbyaV0qkRGVzZmF1wLtKg9yAgVkCqVb5qkYGzvlhVRmpXZ7hVxg1W0MJA==",
        "123e4567-e89b-12d3-a456-426614174000",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
        "version 3.14.2-rc.1+build.20240117, v10.20.30.40",
        "react@18.2.0 and @types/node@20.11.5",
        "git@github.com:org/repo.git",
        "2024-01-17T10:20:30Z, 2024-01-17, 17.01.2024, 10:20:30.123456",
        "order 5820-1147, ticket OPS-2291, invoice INV-2024-0117, ISBN 978-3-16-148410-0",
        "4111 1111 1111 1112",
        "1700000000000 1700000000 16777216 299792458",
        "DE00 3704 0044 0532 0130 00",
        "192.168.1.1:8080 and 10.0.0.0/8, ::1, fe80::1",
        "The password is required. A token is missing. The secret was out.",
        "password: secret:beads-database and token = $TOKEN, key: <your key>",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJk3qYvq8n0m1V2x3B4n5M6a7S8d9F0g1H2j3K4l5Z6x anna",
        "the class HttpRequestHandlerFactory2 in src/freehold/gateway/routes/sessions.py",
        "test_an_agent_that_is_started_on_an_item_gets_it_and_closes_it_with_evidence",
        "/home/agent/.cache and /workspace/src, C:\\Users\\Public\\x",
        "https://example.com/a/8Jf3kLq9ZxT2vBnM4wRy7PdS?x=1#y",
        "1 + 1 = 2; x = 0x7fff5fbff8a0; 3.141592653589793",
        "100 Main points, 5 New Features, 12 Close calls",
        "MAX_CONNECTIONS_PER_HOST=16 LOG_LEVEL=debug",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    ],
)
def test_what_only_looks_alike_is_left_alone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("jo\u200bhn@exa\u00admple.com", "mail"),
        ("ｊｏｈｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", "mail"),
        ("john&#64;example&#x2e;com", "mail"),
        ("john&commat;example.com", "mail"),
        ("john%40example.com", "mail"),
        ("john (at) example (dot) com", "mail"),
        ("john[at]example[dot]com", "mail"),
        ("\u202ejohn@example.com\u202c", "mail"),
        ("+49\u2011171\u20112345678", "phone"),
        ("+４９ １７１ ２３４５６７８", "phone"),
        ("4111\u20031111\u20031111\u20031111", "card"),
        ("4111-1111-1111-1111", "card"),
        ("sk\u2060-abcdefghij\u200dklmnop", "secret"),
        ("ѕk-abcdefghijklmnop and sk-abcdefghijklmnop", "secret"),
        (base64.b64encode(f"key={KEY}".encode()).decode(), "secret"),
        (base64.urlsafe_b64encode(b"write to anna@example.com??>>").decode().rstrip("="), "secret"),
        (KEY.encode().hex(), "secret"),
        ("a" * 5_000 + f" {KEY} " + "b" * 5_000, "secret"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n", "secret"),
    ],
)
def test_hiding_does_not_help(text: str, kind: str) -> None:
    assert kind in {part.kind for part in find_private(text)}


def test_what_names_this_machine_and_its_user_is_found_as_a_word() -> None:
    user = MachineUser(("annasmith", "kestrel.local", "203.0.113.9"))
    assert found("annasmith logged in to kestrel.local from 203.0.113.9", user) == [
        ("address", "annasmith"),
        ("address", "kestrel.local"),
        ("address", "203.0.113.9"),
    ]
    assert found("annasmithers, 203.0.113.99, kestrel.locale", user) == []


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_parts_never_overlap_and_lie_in_the_text(text: str) -> None:
    end = 0
    for part in find_private(text):
        assert end <= part.start < part.end <= len(text)
        end = part.end
    shadow = cast_shadow(text)
    assert len(shadow.text) == len(shadow.starts) == len(shadow.ends)
    assert list(shadow.starts) == sorted(shadow.starts)


@given(st.text(alphabet="ab@. -+0123456789/=([])xsk_:", max_size=4_000))
@settings(max_examples=50, deadline=None)
def test_nothing_is_found_twice_after_it_was_taken_out(text: str) -> None:
    """Texts made of what the patterns are made of also show that none of them takes for ever."""
    find_private(text * 4)


def test_logs_mask_what_the_filter_finds_as_a_known_secret() -> None:
    for secret in ("AKIAIOSFODNN7EXAMPLE", "glpat-abcdefghijklmnopqrst", "AIza" + "x" * 35, "npm_" + "a" * 36):
        assert mask_secrets(f"x {secret} y") == f"x {MASK} y"
        assert found(secret) == [("secret", secret)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r"\u0061lice@example.com", "mail"),
        (r"\\u0061lice\x40example.com", "mail"),
        ("alice%2540example.com", "mail"),
        ("müller@bücher.de", "mail"),
        ("user:alice@example.com", "mail"),
        ("alice@example.com/", "mail"),
        ("4111.1111.1111.1111", "card"),
        ("4111_1111_1111_1111", "card"),
        ("4111 1111\n1111 1111", "card"),
        ("\u0664" + "\u0661" * 15, "card"),
        ("de89 3704 0044 0532 0130 00", "iban"),
        ("015112345678", "phone"),
    ],
)
def test_other_alphabets_separators_and_escapes_do_not_hide_it(text: str, kind: str) -> None:
    assert [part.kind for part in find_private(text)] == [kind]


@pytest.mark.parametrize(
    "text", ["git@github.com:owner/repo", "deploy@host.example.com:path", "https://u@host.example/x"]
)
def test_addresses_of_machines_are_no_mail(text: str) -> None:
    assert find_private(text) == []
