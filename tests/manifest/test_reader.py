"""Files that are no manifest at all are explained."""

import os
from pathlib import Path

import pytest
from tests.manifest.machine import look, only

from freehold.manifest import load_manifest
from freehold.manifest.reader import MAX_BYTES, MAX_DEPTH, read_source


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"[gateway]\nport = \n", "E003", 2),
        (b"[gateway\n", "E003", 1),
        (b"a = 1\na = 2\n", "E003", 2),
        (b'a = "unclosed', "E003", 1),
        (b"a = '''\n\n", "E003", 3),
        (b"port = 08", "E003", 1),
        (b"a = 2020-99-99", "E003", 1),
        (b"a = " + b"1" * 5000, "E003", None),
        (b"[gateway]\nhost = '\xff'", "E002", 2),
        (b"\xff\xfe[\0o\0", "E002", 1),
        (b"a = " + b"[" * 5000, "E004", None),
        (b"a = " + b"{ a = " * 5000, "E004", None),
        (b"a." * 100_000 + b"a = 1", "E004", None),
        (b'"a" . ' * 40_000 + b"a = 1", "E004", None),
        (b"a = { " + b"a." * 100_000 + b"a = 1 }", "E004", None),
        (b"a = " + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "E004", None),
        (b'[gateway]\nhost = "a\\u0000b"', "E006", 2),
        (b'[gateway]\n"\\u0000" = 1', "E006", 1),
        (b"[gateway]\nport = 0x" + b"f" * 9000, "E006", 2),
        (b"[history]\nquota = 9223372036854775808", "E006", 2),
    ],
)
def test_what_cannot_be_read_is_explained(data: bytes, code: str, line: int | None) -> None:
    problem = only(look(data))
    assert (problem.code, problem.line) == (code, line)
    assert problem.hint


def test_a_file_with_windows_lines_and_a_comment_at_its_end_is_read() -> None:
    assert look(b"[gateway]\r\nport = 3001 # mine\r\n# end").manifest.gateway.port == 3001


def test_a_file_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    source = read_source(tmp_path / "freehold.toml")
    assert (source.tree, source.problems) == ({}, ())


def test_a_folder_is_not_a_manifest(tmp_path: Path) -> None:
    assert read_source(tmp_path).problems[0].code == "E001"


def test_a_file_that_may_not_be_read_is_explained(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert read_source(loop).problems[0].code == "E001"


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)  # sparse: reading it all would take 10 GiB of memory
    assert read_source(path).problems[0].code == "E004"


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text("#" * (MAX_BYTES - 1) + "\n")
    assert read_source(path).problems == ()


def test_an_odd_file_name_is_printable(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.toml"))
    path.write_text("x")
    problem = load_manifest(path, {}).problems[0]
    problem.place.encode()


def test_a_home_that_is_a_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a folder")
    for path in (tmp_path / "notes" / "freehold.toml", tmp_path / "notes" / "home" / "freehold.toml"):
        problem = only(load_manifest(path, {}))
        assert problem.code == "E001"
        assert problem.message == f"{tmp_path / 'notes'} is a file, and a home is a folder"
