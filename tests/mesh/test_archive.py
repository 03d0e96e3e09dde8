"""A returned archive is hostile data: whatever is not a plain file inside its folder refuses all of it."""

import io
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.mesh.archive import ArchiveFile, pack_files, read_archive, read_folder, unpack_files
from freehold.mesh.tar_entries import BadTar, read_entries

FILES = [ArchiveFile("a.txt", b"one"), ArchiveFile("bin/run", b"#!/bin/sh\n", True), ArchiveFile("deep/er/c", b"")]


def make_archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for entry, data in entries:
            entry.size = len(data) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(data) if entry.isreg() else None)
    return target.getvalue()


def named(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def test_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    assert read_archive(pack_files(FILES)) == FILES
    unpack_files(FILES, tmp_path, ("into", "here"))
    root = tmp_path / "into" / "here"
    assert (root / "a.txt").read_bytes() == b"one"
    assert (root / "bin" / "run").stat().st_mode & 0o777 == 0o755
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "a/../../out",
        "/etc/passwd",
        "a//b",
        "./a",
        "a/",
        "",
        ".",
        "..",
        "a\nb",
        "a\\b",
        "x" * 300,
        "a/" * 40 + "b",
        "\x1b[2J",
    ],
)
def test_a_path_that_is_not_plain_refuses_the_archive(name: str) -> None:
    with pytest.raises(FreeholdError) as error:
        read_archive(make_archive((named("good"), b"x"), (named(name), b"x")))
    assert error.value.code == "mesh.bad-file"
    assert error.value.message.isprintable()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE]
)
def test_a_link_a_device_or_a_folder_refuses_the_archive(kind: bytes) -> None:
    with pytest.raises(FreeholdError, match="not a plain file"):
        read_archive(make_archive((named("link", kind, "/etc/passwd"), b""), (named("link/x"), b"x")))


def test_a_name_that_comes_twice_refuses_the_archive() -> None:
    with pytest.raises(FreeholdError, match="twice"):
        read_archive(make_archive((named("a"), b"1"), (named("a"), b"2")))
    with pytest.raises(FreeholdError, match="a file and a folder"):
        read_archive(make_archive((named("a"), b"1"), (named("a/b"), b"2")))


def test_modes_beyond_a_program_are_not_taken_over() -> None:
    entry = named("setuid")
    entry.mode, entry.uid = 0o6777, 0
    (found,) = read_archive(make_archive((entry, b"x")))
    assert (found.is_program, found.path) == (True, "setuid")


def test_what_is_too_large_or_cut_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack_files([ArchiveFile("a", b"x" * 5000)])
    with pytest.raises(FreeholdError):
        read_archive(packed[:3000])
    monkeypatch.setattr("freehold.mesh.archive.MAX_BYTES", 1000)
    for refused in (lambda: read_archive(packed), lambda: pack_files([ArchiveFile("a", b"x" * 5000)])):
        with pytest.raises(FreeholdError, match=r"too large|more than"):
            refused()
    monkeypatch.setattr("freehold.mesh.archive.MAX_FILES", 1)
    with pytest.raises(FreeholdError):
        read_archive(make_archive((named("a"), b""), (named("b"), b"")))


def test_unpacking_never_follows_a_link_that_is_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "bin").symlink_to(outside)
    with pytest.raises(OSError, match=r".*"):
        unpack_files(FILES, root, ())
    assert list(outside.iterdir()) == []


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000), st.integers(0, 2000))
def test_any_bytes_are_read_or_refused(noise: bytes, place: int) -> None:
    packed = pack_files(FILES)
    for data in (noise, packed[:place] + noise + packed[place + len(noise) :]):
        with suppress(FreeholdError):
            found = read_archive(data)
            assert all(".." not in one.path.split("/") and not one.path.startswith("/") for one in found)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 8 * 512), st.booleans())
def test_what_is_read_is_what_the_standard_library_reads(noise: bytes, place: int, has_sum: bool) -> None:
    """The second implementation. What only that one takes is no concern: links, sparse files, other formats."""
    packed = bytearray(pack_files([*FILES, ArchiveFile("long/" * 25 + "name", b"x" * 600), ArchiveFile("ä", b"")]))
    packed[place : place + len(noise)] = noise
    if has_sum:  # as who damages it on purpose
        start = place // 512 * 512
        packed[start + 148 : start + 156] = b" " * 8
        packed[start + 148 : start + 156] = b"%06o\0 " % sum(packed[start : start + 512])
    try:
        found = [(one.path.rstrip("/"), one.data, one.mode) for one in read_entries(bytes(packed))]
    except BadTar:
        return
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
        other = [(one.name.rstrip("/"), archive.extractfile(one).read(), one.mode) for one in archive]  # type: ignore[union-attr]
    assert found == other


def header(kind: bytes, size: int) -> bytes:
    made = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT)[:512])
    made[156:157], made[124:136] = kind, b"%011o\0" % size
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K", b"X", b"S"])
def test_a_header_that_takes_hours_to_read_is_refused_at_once(kind: bytes) -> None:
    """Millions of digits, for which the standard library looks again from each of them; and thousands of headers."""
    digits = b"9" * (30 << 20)
    with pytest.raises(FreeholdError) as error:
        read_archive(header(kind, len(digits)) + digits + pack_files(FILES))
    assert error.value.code == "mesh.bad-file"
    with pytest.raises(FreeholdError):
        read_archive((header(kind, 10) + b"10 path=a\n".ljust(512, b"\0")) * 30_000 + pack_files(FILES))


@pytest.mark.parametrize("size", [b"\x80" + b"\0" * 10 + b"\1", b"\xff" * 12, b"-0000000512\0", b"1e3\0", b"\0" * 12])
def test_a_size_that_is_no_plain_number_is_refused(size: bytes) -> None:
    packed = bytearray(pack_files(FILES))
    packed[124:136] = size.ljust(12, b"\0")
    packed[148:156] = b" " * 8
    packed[148:156] = b"%06o\0 " % sum(packed[:512])
    with pytest.raises(FreeholdError, match="a number is damaged"):
        read_archive(bytes(packed))


@pytest.mark.parametrize(
    "records",
    [b"11 path=abc\n", b"12 path=abc\n11 size=123\n", b"13 size=12345\n", b"11 path=abc ", b"path=abc\n", b""],
)
def test_a_header_that_says_more_than_a_name_is_refused(records: bytes) -> None:
    packed = header(b"x", len(records)) + records.ljust(512, b"\0") + pack_files(FILES)
    with pytest.raises(FreeholdError) as error:
        read_archive(packed)
    assert error.value.code == "mesh.bad-file"


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(FreeholdError, match="follows"):
        read_archive(pack_files(FILES) + pack_files(FILES))
    with pytest.raises(FreeholdError, match="no end"):
        read_archive(b"")


@pytest.mark.parametrize("text", ["../x", "a/../b", "a\x00b", "a\\b"])
def test_a_folder_outside_the_workspace_is_refused(text: str) -> None:
    with pytest.raises(FreeholdError):
        read_folder(text)


def test_a_folder_is_read_by_its_parts() -> None:
    assert (read_folder(""), read_folder("/site//new/")) == ((), ("site", "new"))
