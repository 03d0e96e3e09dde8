"""A trace is the owner's alone, has an end, and breaks nothing."""

from pathlib import Path

import pytest

from freehold.agents.trace import Trace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FREEHOLD_TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


def test_secrets_are_masked_also_where_one_is_part_of_another(folder: Path) -> None:
    with Trace("claude", "s/../1", ["key", "longer-key", ""]) as write:
        assert write is not None
        write("out", b'{"a":"longer-key","b":"key"}\n')
        write("in", b"plain\n")
    assert [path.name for path in folder.iterdir()] == ["claude-s_.._1.jsonl"]
    assert (folder / "claude-s_.._1.jsonl").read_bytes() == b'> {"a":"***","b":"***"}\n< plain\n'


def test_it_never_takes_more_than_two_files_of_its_size(folder: Path) -> None:
    for _ in range(2):
        with Trace("a", "s", [], most=1000) as write:
            assert write is not None
            for number in range(500):
                write("in", b"%d" % number)
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 1000
    assert (folder / "a-s.jsonl").read_bytes().endswith(b"< 499\n")


def test_one_that_stood_open_to_others_is_closed_and_a_planted_link_is_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    folder.mkdir()
    (folder / "a-s.jsonl").touch(0o644)
    with Trace("a", "s", []):
        assert (folder / "a-s.jsonl").stat().st_mode & 0o777 == 0o600
    (tmp_path / "elsewhere").write_text("mine")
    (folder / "a-t.jsonl").symlink_to(tmp_path / "elsewhere")
    with Trace("a", "t", []) as write:
        assert write is None
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_folder_that_cannot_be_written_traces_nothing_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FREEHOLD_TRACE", str(tmp_path / "file" / "below"))
    with Trace("a", "s", []) as write:
        assert write is None
    monkeypatch.delenv("FREEHOLD_TRACE")
    with Trace("a", "s", []) as write:
        assert write is None
