"""What is encrypted here opens with age and with a second implementation, and the other way round."""

import os
import subprocess
from pathlib import Path

import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from freehold.backup.age import AgeIdentity, AgeRecipient, CannotDecrypt, decrypt, encrypt

SIZES = (0, 1, 65_535, 65_536, 65_537, 131_072, 200_000)


@pytest.mark.parametrize("size", SIZES)
def test_a_second_implementation_agrees_in_both_directions(size: int) -> None:
    data = os.urandom(size)
    mine = AgeIdentity.generate()
    theirs = pyrage.x25519.Identity.from_str(mine.reveal())
    assert str(theirs.to_public()) == str(mine.recipient)
    assert pyrage.decrypt(encrypt(data, [mine.recipient]), [theirs]) == data
    assert decrypt(pyrage.encrypt(data, [theirs.to_public()]), mine) == data


def test_the_program_age_opens_it(tmp_path: Path) -> None:
    mine, other = AgeIdentity.generate(), AgeIdentity.generate()
    (tmp_path / "key").write_text(f"# my key\n{mine.reveal()}\n")
    (tmp_path / "file.age").write_bytes(encrypt(b"hello" * 40_000, [other.recipient, mine.recipient]))
    done = subprocess.run(
        ["age", "-d", "-i", tmp_path / "key", tmp_path / "file.age"], capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"hello" * 40_000


def test_another_key_opens_nothing() -> None:
    with pytest.raises(CannotDecrypt, match="another key"):
        decrypt(encrypt(b"secret", [AgeIdentity.generate().recipient]), AgeIdentity.generate())


KEY = AgeIdentity.generate()
SEALED = encrypt(b"x" * 70_000, [KEY.recipient])


@settings(max_examples=150, deadline=None)
@given(place=some.integers(0, len(SEALED) - 1), bit=some.integers(0, 7))
def test_any_changed_bit_is_noticed(place: int, bit: int) -> None:
    changed = bytearray(SEALED)
    changed[place] ^= 1 << bit
    with pytest.raises(CannotDecrypt):
        decrypt(bytes(changed), KEY)


@settings(max_examples=60, deadline=None)
@given(length=some.integers(0, len(SEALED) - 1))
def test_a_file_that_was_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(CannotDecrypt):
        decrypt(SEALED[:length], KEY)


def test_a_file_that_grew_is_noticed() -> None:
    for more in (b"\0", SEALED[-16:], SEALED[-70:]):
        with pytest.raises(CannotDecrypt):
            decrypt(SEALED + more, KEY)


@settings(max_examples=200, deadline=None)
@given(data=some.binary(max_size=400))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    for text in (data, b"age-encryption.org/v1\n" + data, SEALED[:60] + data):
        with pytest.raises(CannotDecrypt):
            decrypt(text, KEY)


def test_keys_are_read_as_a_person_types_them() -> None:
    text = KEY.reveal()
    spaced = f"  {text[:20]} {text[20:50]}\n{text[50:]} "
    assert AgeIdentity.parse(spaced).reveal() == text
    assert AgeIdentity.parse(text.lower()).reveal() == text
    for wrong in (
        "",
        "AGE-SECRET-KEY-1",
        text[:-1],
        text[:-1] + ("P" if text.endswith("Q") else "Q"),
        text[:20] + text[20:].lower(),
        str(KEY.recipient),
    ):
        with pytest.raises(ValueError):
            AgeIdentity.parse(wrong)
    with pytest.raises(ValueError):
        AgeRecipient.parse(text)
