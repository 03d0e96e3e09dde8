"""Secrets at rest, and what happens to who touches them."""

from pathlib import Path

import pytest

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError

VALUE = "sk-something-very-secret-1234567890"


def test_a_secret_comes_back_and_its_value_is_nowhere_on_the_disk(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.set("openai", VALUE)
    assert vault.get("openai").reveal() == VALUE
    assert VALUE not in repr(vault.get("openai")) + str(vault.list())
    for path in (tmp_path / "vault").iterdir():
        assert VALUE.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "vault").stat().st_mode & 0o077 == 0


def test_the_list_tells_when_it_was_set_and_used(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    assert vault.list() == []
    vault.set("b", VALUE)
    vault.set("a", VALUE)
    vault.get("b")
    listed = vault.list()
    assert [kept.name for kept in listed] == ["a", "b"]
    assert listed[0].used_at is None
    assert listed[1].used_at is not None
    assert listed[1].used_at >= listed[1].set_at


def test_a_removed_or_replaced_secret_is_gone(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.set("a", VALUE)
    vault.set("a", "another")
    assert vault.get("a").reveal() == "another"
    vault.remove("a")
    for act in (vault.get, vault.remove):
        with pytest.raises(FreeholdError) as refused:
            act("a")
        assert refused.value.code == "secret.not-found"


def test_a_box_under_another_name_does_not_open(tmp_path: Path) -> None:
    """Who can write the file but has no key cannot give one provider the key of another."""
    import sqlite3

    vault = Vault(tmp_path)
    vault.set("a", VALUE)
    vault.set("b", "other")
    with sqlite3.connect(tmp_path / "secrets.db") as database:
        database.execute("UPDATE secret SET box = (SELECT box FROM secret WHERE name = 'a') WHERE name = 'b'")
    database.close()
    with pytest.raises(FreeholdError) as refused:
        vault.get("b")
    assert refused.value.code == "secret.unreadable"


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.set("a", VALUE)
    (tmp_path / "secrets.key").chmod(0o644)
    with pytest.raises(FreeholdError) as refused:
        vault.get("a")
    assert refused.value.code == "secret.key-exposed"


@pytest.mark.parametrize("name", ["", "../a", "a/b", "a b", "-a", "a" * 101, "ä"])
def test_an_odd_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as refused:
        Vault(tmp_path).set(name, VALUE)
    assert refused.value.code == "secret.bad-name"


@pytest.mark.parametrize("value", ["", " a", "a\n", "a\r\nX: y", "a\0b", "x" * 70_000])
def test_what_could_not_be_sent_is_not_kept(value: str, tmp_path: Path) -> None:
    with pytest.raises(FreeholdError):
        Vault(tmp_path).set("a", value)
    assert Vault(tmp_path).list() == []
