"""Skills come from folders, archives and commits, and nothing else comes with them."""

import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.skills.skill_folders import commit_all, skill_text, write_skill, write_tar, write_zip

from freehold.errors import FreeholdError
from freehold.skills import package, sources
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
