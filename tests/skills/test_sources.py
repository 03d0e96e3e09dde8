"""Skills come from folders, archives and commits, and nothing else comes with them."""

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.skills.skill_folders import commit_all, skill_text, write_skill, write_tar, write_zip

from freehold.errors import FreeholdError
from freehold.skills import bounded_archive, package, sources
from freehold.skills.sources import read_source

HEAD = skill_text().encode()


def test_a_folder_an_archive_and_a_commit_of_the_same_files_are_the_same_version(tmp_path: Path) -> None:
    files = {"scripts/draw.py": b"#!/usr/bin/env python3\n", "references/a.md": b"# A\n"}
    folder = write_skill(tmp_path / "charts", files=files)
    commit = commit_all(folder)
    (tmp_path / "x").mkdir()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(folder, "charts", filter=lambda member: None if ".git" in member.name else member)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                packed.write(path, f"repo/charts/{path.relative_to(folder)}")
    found = [
        *read_source(str(folder)),
        *read_source(str(tmp_path / "a.tar.gz")),
        *read_source(str(tmp_path / "a.zip")),
        *read_source(str(folder), commit="HEAD"),
    ]
    assert len({one.package.digest for one in found}) == 1
    assert [one.source.kind for one in found] == ["folder", "archive", "archive", "git"]
    assert [one.source.part for one in found] == ["", "charts", "repo/charts", ""]
    assert found[3].source.commit == commit
    assert list(found[0].package.files) == ["SKILL.md", "references/a.md", "scripts/draw.py"]
    assert found[0].package.files["scripts/draw.py"].executable


def test_the_version_changes_with_content_name_and_executable_bit(tmp_path: Path) -> None:
    digests = set()
    for number, files in enumerate(({}, {"a": b"1"}, {"a": b"2"}, {"b": b"1"}, {"a": b"#!x"})):
        (one,) = read_source(str(write_skill(tmp_path / str(number), files=files)))
        digests.add(one.package.digest)
    plain = write_skill(tmp_path / "plain", files={"a": b"#!x"})
    (plain / "a").chmod(0o644)
    digests.add(read_source(str(plain))[0].package.digest)
    assert len(digests) == 6


def test_several_skills_of_a_source_are_found_and_a_nested_one_belongs_to_the_outer(tmp_path: Path) -> None:
    write_skill(tmp_path / "s/b", "b")
    write_skill(tmp_path / "s/a", "a")
    write_skill(tmp_path / "s/a/assets/example", "inner")
    assert [one.package.name for one in read_source(str(tmp_path))] == ["a", "b"]
    commit_all(tmp_path)
    assert [one.package.name for one in read_source(str(tmp_path), commit="HEAD")] == ["a", "b"]
    files = {"s/a/SKILL.md": skill_text("a").encode(), "s/a/x/SKILL.md": HEAD, "s/b/SKILL.md": skill_text("b").encode()}
    assert [one.package.name for one in read_source(str(write_zip(tmp_path / "a.zip", files)))] == ["a", "b"]


def test_a_link_in_a_folder_is_refused_wherever_it_leads(tmp_path: Path) -> None:
    for number, target in enumerate(("/etc/passwd", "../../secret", "SKILL.md")):
        folder = write_skill(tmp_path / str(number))
        (folder / "notes").symlink_to(target)
        with pytest.raises(FreeholdError, match="'notes' is a link"):
            read_source(str(folder))
    folder = write_skill(tmp_path / "linked")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/etc/hostname")
    with pytest.raises(FreeholdError, match="is a link"):
        read_source(str(folder))


def test_a_pipe_in_a_folder_is_refused_and_nobody_waits_for_it(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    os.mkfifo(folder / "pipe")
    with pytest.raises(FreeholdError, match="special file"):
        read_source(str(folder))


def test_a_deep_tree_of_folders_is_refused(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    (folder / "/".join("a" * 200)).mkdir(parents=True)
    with pytest.raises(FreeholdError, match="too deep"):
        read_source(str(folder))


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/cron.d/evil", "a/../../evil", "a\\..\\evil", "a//b", "a/\u202egnp.sh"]
)
def test_a_name_in_an_archive_that_leads_out_or_hides_is_refused(tmp_path: Path, name: str) -> None:
    for made in (
        write_zip(tmp_path / "a.zip", {"SKILL.md": HEAD, name: b"x"}),
        write_tar(tmp_path / "a.tar", {"SKILL.md": HEAD, name: b"x"}),
    ):
        with pytest.raises(FreeholdError) as caught:
            read_source(str(made))
        assert caught.value.code == "skill.refused"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tar", "a.zip"]


def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        member = tarfile.TarInfo()
        member.type, member.linkname = kind, "/etc/passwd"
        with pytest.raises(FreeholdError, match=r"is a (link|special file)"):
            read_source(str(write_tar(tmp_path / "a.tar", {"SKILL.md": HEAD, "notes": member})))
    link = zipfile.ZipInfo("notes")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("SKILL.md", HEAD)
        packed.writestr(link, "/etc/passwd")
    with pytest.raises(FreeholdError, match="is a link"):
        read_source(str(tmp_path / "a.zip"))


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for name in ("A.md", "a.md"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
            packed.writestr("SKILL.md", HEAD)
            packed.writestr("a.md", b"shown")
            with pytest.warns(UserWarning, match="Duplicate") if name == "a.md" else pytest.MonkeyPatch.context():
                packed.writestr(name, b"hidden")
        with pytest.raises(FreeholdError, match="twice"):
            read_source(str(tmp_path / "a.zip"))


def test_a_gigabyte_of_zeros_in_a_small_archive_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "MAX_BYTES", 100_000)
    monkeypatch.setattr(sources, "MAX_UNPACKED", 10_000_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("SKILL.md", HEAD)
        packed.writestr("zeros", bytes(20_000_000))
    with pytest.raises(FreeholdError) as caught:
        read_source(str(tmp_path / "a.zip"))
    assert caught.value.code == "skill.too-big"
    for size in (200_000, 20_000_000):
        with pytest.raises(FreeholdError) as caught:
            read_source(str(write_tar(tmp_path / "a.tar", {"SKILL.md": HEAD, "zeros": bytes(size)})))
        assert caught.value.code == "skill.too-big"


def tar_head(kind: bytes, size: int = 0, name: str = "x") -> bytes:
    head = tarfile.TarInfo(name)
    head.type, head.size = kind, size
    return head.tobuf(tarfile.USTAR_FORMAT)


def pax_record(words: str) -> bytes:
    return f"{len(words) + 4} {words}\n".encode()


def in_blocks(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def extended(kind: bytes, data: bytes) -> bytes:
    return tar_head(kind, len(data)) + in_blocks(data)


HOLES = b"".join(map(pax_record, ("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.realsize=1")))
LONG_LISTS = {
    "one head with a gigabyte": [tar_head(tarfile.XHDTYPE, 1024**3), bytes(20 * 1024**2)],
    "one name with a gigabyte": [tar_head(tarfile.GNUTYPE_LONGNAME, 1024**3), bytes(20 * 1024**2)],
    "what is kept for each file": [
        extended(tarfile.XGLTYPE, b"".join(pax_record(f"k{number:04}=x") for number in range(1000))),
        *(tar_head(tarfile.REGTYPE, name=f"f{number}") for number in range(1000)),
    ],
    "many heads": [extended(tarfile.XHDTYPE, bytes(60_000)) for _ in range(300)],
    "a list of holes": [extended(tarfile.XHDTYPE, HOLES), tar_head(tarfile.REGTYPE, 1024**3), b"1\n" * 4 * 1024**2],
    "a file with holes": [tar_head(tarfile.GNUTYPE_SPARSE)],
}


@pytest.mark.parametrize("parts", LONG_LISTS.values(), ids=list(LONG_LISTS))
@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress, lzma.compress])
def test_the_list_of_an_archive_does_not_fill_the_memory(
    tmp_path: Path, parts: list[bytes], pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "a.tar").write_bytes(pack(b"".join([tar_head(tarfile.REGTYPE, name="y"), *parts])))
    assert_refused_in_little_memory(tmp_path / "a.tar")


def test_the_list_of_a_zip_archive_does_not_fill_the_memory(tmp_path: Path) -> None:
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, *[0] * 5, 0x21, 0, 0, 0, 1, *[0] * 6) + b"a"
    size = 1_000_000 * len(entry)
    with (tmp_path / "a.zip").open("wb") as file:
        for _ in range(100):
            file.write(entry * 10_000)
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, size, 0, 0))
    assert_refused_in_little_memory(tmp_path / "a.zip")


def assert_refused_in_little_memory(archive: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FreeholdError) as caught:
            read_source(str(archive))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code in ("skill.too-big", "skill.refused")
    assert "not a readable" not in caught.value.message
    assert peak < 4 * bounded_archive.MAX_TAR_LIST


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_archive_is_refused(tmp_path: Path, mode: str, cut: bool) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{mode}") as tar:  # type: ignore[call-overload]
        for name, content in (("SKILL.md", HEAD), ("noise", random.Random(7).randbytes(300_000))):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert_damage_is_told(tmp_path / "a.tar", packed.getvalue(), cut=cut)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_archive_is_refused(tmp_path: Path, method: int) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("SKILL.md", HEAD * 1000)
    assert_damage_is_told(tmp_path / "a.zip", packed.getvalue(), cut=False)


def assert_damage_is_told(archive: Path, whole: bytes, *, cut: bool) -> None:
    middle = len(whole) // 2
    harmed = whole[:middle] if cut else whole[:60] + bytes(one ^ 0x55 for one in whole[60:80]) + whole[80:]
    archive.write_bytes(harmed)
    with pytest.raises(FreeholdError) as caught:
        read_source(str(archive))
    assert (caught.value.code, "not a readable" in caught.value.message) == ("skill.refused", True)


def test_a_folder_with_a_gigabyte_is_refused_before_all_of_it_is_read(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    with (folder / "model.bin").open("wb") as file:
        file.truncate(1024**3)
    tracemalloc.start()
    try:
        with pytest.raises(FreeholdError) as caught:
            read_source(str(folder))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == "skill.too-big"
    assert peak < 4 * package.MAX_BYTES


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_FILES", 3)
    files = {f"f{number}": b"" for number in range(3)}
    with pytest.raises(FreeholdError, match="more than 3 files"):
        read_source(str(write_skill(tmp_path / "charts", files=files)))


def test_a_commit_that_is_an_option_or_missing_is_refused(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    commit_all(folder)
    for commit in ("--upload-pack=touch /tmp/x", "nothing", "HEAD~9"):
        with pytest.raises(FreeholdError):
            read_source(str(folder), commit=commit)


def test_the_branch_or_tag_that_was_named_is_kept_and_no_commit(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    commit = commit_all(folder)
    subprocess.run(["git", "-C", str(folder), "tag", "v1"], check=True)
    for asked, kept in (("v1", "v1"), ("HEAD", None), ("HEAD~0", None), (commit, None), (commit[:6].upper(), None)):
        (one,) = read_source(str(folder), commit=asked)
        assert (one.source.commit, one.source.ref) == (commit, kept)


def test_what_follows_a_refused_file_of_a_commit_is_read_as_it_is(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "a", {"large": bytes(package.MAX_BYTES + 1)})
    write_skill(tmp_path / "b", "b", {"notes.md": b"# B\n"})
    commit_all(tmp_path)
    refused: sources.Refused = {}
    (found,) = read_source(str(tmp_path), commit="HEAD", refused=refused)
    assert {path: file.content for path, file in found.package.files.items()} == {
        "SKILL.md": skill_text("b").encode(),
        "notes.md": b"# B\n",
    }
    assert refused["a"].code == "skill.too-big"


def test_a_repository_without_an_object_is_refused_as_a_whole(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "a")
    write_skill(tmp_path / "b", "b")
    commit_all(tmp_path)
    git = ["git", "-C", str(tmp_path), "rev-parse", "HEAD:a/SKILL.md"]
    number = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    (tmp_path / ".git/objects" / number[:2] / number[2:].strip()).unlink()
    with pytest.raises(FreeholdError, match=r"'a/SKILL.md' is missing in the repository"):
        read_source(str(tmp_path), commit="HEAD", refused={})


def test_the_configuration_of_a_repository_runs_nothing(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "charts")
    commit_all(folder)
    mark = tmp_path / "ran"
    with (folder / ".git/config").open("a") as file:
        file.write(
            f'[core]\n\tfsmonitor = "touch {mark}"\n\tpager = "touch {mark}"\n[filter "x"]\n\tsmudge = touch {mark}\n'
        )
    assert read_source(str(folder), commit="HEAD")
    assert not mark.exists()


def test_what_is_no_source_is_told(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(os.urandom(2000))
    for place, why in (("noise", "not a readable"), ("absent", "There is no"), (".", "no SKILL.md")):
        with pytest.raises(FreeholdError, match=why):
            read_source(str(tmp_path / place))
