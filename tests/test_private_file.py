"""A private file is created once and completely, and refused when other users could have read it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.private_file import make_private_file, read_private_file


def read(path: Path) -> bytes:
    return read_private_file(path, code="thing.key", remedy="make a new one")


def test_the_file_is_created_once_by_many_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "key"
    contents = [bytes([number]) * 64 for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda content: make_private_file(path, content), contents))
    first = read(path)
    assert first in contents
    make_private_file(path, b"another")
    assert read(path) == first
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_other_users_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    make_private_file(path, b"secret")
    path.chmod(0o644)
    with pytest.raises(FreeholdError) as refused:
        read(path)
    assert (refused.value.code, refused.value.hint) == ("thing.key-exposed", "make a new one")


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"not a key")
    elsewhere.chmod(0o600)
    path = tmp_path / "key"
    path.symlink_to(elsewhere)
    make_private_file(path, b"secret")
    assert elsewhere.read_bytes() == b"not a key"
    with pytest.raises(FreeholdError) as refused:
        read(path)
    assert refused.value.code == "thing.key"
