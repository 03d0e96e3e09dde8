"""An archive may come from anywhere. What is read of it is what tar itself would read, or it is refused."""

import io
import random
import tarfile
from pathlib import Path

import pytest

from freehold.backup.stores.archive import ArchiveStore
from freehold.backup.stores.tar_members import BLOCK, BadArchive, TarMember, read_members
from freehold.errors import FreeholdError

NAMES = ("repository.json", "key.age", "meta/lease/000000000001", "packs/ab/abcdef")


def make_archive(form: int = tarfile.USTAR_FORMAT, **odd: object) -> bytes:
    """One with a folder and several files; `odd` changes the second one."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        folder = tarfile.TarInfo("packs")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for number, name in enumerate(NAMES):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = 700, 1_700_000_000
            if number == 1:
                for key, value in odd.items():
                    setattr(member, key, value)
            tar.addfile(member, io.BytesIO(bytes([number]) * 700))
    return made.getvalue()


def read(tmp_path: Path, data: bytes) -> list[TarMember]:
    (tmp_path / "archive").write_bytes(data)
    with (tmp_path / "archive").open("rb") as file:
        return list(read_members(file.fileno()))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_every_form_are_read(tmp_path: Path, form: int) -> None:
    data = make_archive(form, mtime=1_700_000_000.5 if form == tarfile.PAX_FORMAT else 1_700_000_000)
    found = read(tmp_path, data)
    assert tuple(one.name for one in found) == NAMES
    for number, one in enumerate(found):
        assert data[one.offset : one.offset + one.size] == bytes([number]) * 700


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(BadArchive, match="neither a file nor a folder"):
        read(tmp_path, make_archive(type=kind, linkname="/etc/passwd"))


@pytest.mark.parametrize("size", [-512, -(1 << 40), 1 << 62, 8**11 - 1])
def test_a_size_that_cannot_be_is_refused(tmp_path: Path, size: int) -> None:
    """A negative one would lead back, and reading would never end."""
    header = tarfile.TarInfo("key.age")
    header.size = size
    for data in (header.tobuf(tarfile.GNU_FORMAT), header.tobuf(tarfile.GNU_FORMAT) + bytes(4 * BLOCK)):
        with pytest.raises(BadArchive):
            read(tmp_path, data)


def test_names_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "/etc/passwd", "packs/../x", "packs/a..b", "-x", "PACKS"):
        (tmp_path / "archive").write_bytes(make_archive(name=name))
        store = ArchiveStore(tmp_path / "archive")
        assert {one.name for one in store.list_objects("")} == {*NAMES} - {"key.age"}
        store.close()


def test_a_changed_archive_is_read_as_tar_reads_it_or_refused(tmp_path: Path) -> None:
    """Thousands of changes, each with right checksums."""
    chance, whole = random.Random(19), make_archive()
    heads = [one.offset - BLOCK for one in read(tmp_path, whole)]
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        head = chance.choice(heads)
        for _ in range(chance.choice((1, 2, 5))):
            data[head + chance.randrange(BLOCK)] = chance.choice(
                (0, 0x20, 0x2F, 0x30, 0x37, 0x80, 0xFF, chance.randrange(256))
            )
        data[head + 148 : head + 156] = b"        "
        data[head + 148 : head + 156] = b"%06o\0 " % sum(data[head : head + BLOCK])
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        try:
            found = read(tmp_path, bytes(data))
        except BadArchive:
            refused += 1
            continue
        with tarfile.open(tmp_path / "archive") as tar:
            theirs = {one.offset_data: one.size for one in tar if one.type in (tarfile.REGTYPE, tarfile.AREGTYPE)}
        assert {one.offset: one.size for one in found}.items() >= theirs.items()
    assert refused > 100


def test_what_is_no_archive_is_named(tmp_path: Path) -> None:
    for data in (b"", b"text" * 1000, make_archive()[:3000]):
        (tmp_path / "archive").write_bytes(data)
        with pytest.raises(FreeholdError) as caught:
            ArchiveStore(tmp_path / "archive")
        assert caught.value.code == "backup.refused"
        assert "is not what freehold export writes" in caught.value.message
