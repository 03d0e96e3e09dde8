"""A trace is readable only by the owner, has a maximum size, and never stops a session."""

from pathlib import Path

import pytest

from freehold.agents.acp.trace import AcpTrace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FREEHOLD_TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


def test_secrets_are_masked_even_if_one_is_part_of_another(folder: Path) -> None:
    with AcpTrace("claude", "s/../1", ["key", "longer-key", ""]) as write:
        assert write is not None
        write("out", b'{"a":"longer-key","b":"key"}\n')
        write("in", b"plain\n")
    assert [path.name for path in folder.iterdir()] == ["claude-s_.._1.jsonl"]
    assert (folder / "claude-s_.._1.jsonl").read_bytes() == b'> {"a":"***","b":"***"}\n< plain\n'


def test_a_trace_uses_at_most_two_files_of_its_maximum_size(folder: Path) -> None:
    for _ in range(2):
        with AcpTrace("a", "s", [], max_size=1000) as write:
            assert write is not None
            for number in range(500):
                write("in", b"%d" % number)
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 1000
    assert (folder / "a-s.jsonl").read_bytes().endswith(b"< 499\n")


def test_permissions_of_an_existing_file_are_tightened_and_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "a-s.jsonl").touch(0o644)
    with AcpTrace("a", "s", []):
        assert (folder / "a-s.jsonl").stat().st_mode & 0o777 == 0o600
    (tmp_path / "elsewhere").write_text("mine")
    (folder / "a-t.jsonl").symlink_to(tmp_path / "elsewhere")
    with AcpTrace("a", "t", []) as write:
        assert write is None
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_folder_that_cannot_be_written_disables_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FREEHOLD_TRACE", str(tmp_path / "file" / "below"))
    with AcpTrace("a", "s", []) as write:
        assert write is None
    monkeypatch.delenv("FREEHOLD_TRACE")
    with AcpTrace("a", "s", []) as write:
        assert write is None
