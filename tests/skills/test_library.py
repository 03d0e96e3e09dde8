"""Skills are stored by their hash, shown by the lock, and are what they were when they were added."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.skills.skill_folders import commit_all, skill_text, write_skill

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills.checks import check_package, list_scripts
from freehold.skills.library import SkillLibrary, choose_skills, latest_of
from freehold.skills.sources import read_source
from freehold.skills.store import check_skills


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root, tmp_path / "run")


@pytest.fixture
def library(home: Home) -> SkillLibrary:
    return SkillLibrary(home)


def add(library: SkillLibrary, folder: Path) -> list[str]:
    return library.add(read_source(str(folder)))


def test_a_skill_is_stored_once_and_read_only_and_can_be_seen_by_name(
    library: SkillLibrary, home: Home, tmp_path: Path
) -> None:
    source = write_skill(tmp_path / "charts", files={"scripts/a.sh": b"#!/bin/sh\necho ok\n"})
    assert add(library, source) == add(library, source) == ["charts"]
    (version,) = (home.skills / "versions").iterdir()
    seen = home.skills / "current/charts"
    assert seen.resolve() == version
    assert (seen / "scripts/a.sh").stat().st_mode & 0o777 == 0o555
    assert (seen / "SKILL.md").stat().st_mode & 0o777 == 0o444
    assert subprocess.run([seen / "scripts/a.sh"], check=True, capture_output=True).stdout == b"ok\n"


def test_another_version_is_used_only_when_it_is_asked_for(library: SkillLibrary, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts")
    add(library, source)
    (source / "SKILL.md").write_text(skill_text() + "More.\n")
    with pytest.raises(FreeholdError, match="another version"):
        add(library, source)
    update = library.find_update("charts", library.read(str(source)))
    assert update is not None
    (change,) = library.compare("charts", update.package)
    assert (change.path, change.word) == ("SKILL.md", "changed")
    assert "+More." in (change.diff or "")
    library.add([update], replaces=True)
    assert library.find_update("charts", library.read(str(source))) is None
    assert "More." in library.describe("charts").package.instructions


def test_an_update_of_a_repository_is_its_newest_commit(library: SkillLibrary, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts")
    first = commit_all(source)
    library.add(read_source(str(source), commit="HEAD"))
    assert library.describe("charts").skill.source.commit == first
    (source / "new.md").write_text("x")
    place, newest = latest_of(library.find_source("charts"))
    assert library.find_update("charts", library.read(place, newest)) is None
    second = commit_all(source)
    update = library.find_update("charts", library.read(place, newest))
    assert update is not None
    assert update.source.commit == second


def test_a_changed_version_in_the_store_is_noticed(library: SkillLibrary, home: Home, tmp_path: Path) -> None:
    add(library, write_skill(tmp_path / "charts", files={"a.sh": b"#!/bin/sh\n"}))
    check_skills(home)
    version = (home.skills / "current/charts").resolve()
    for harm in ("content", "mode", "file", "link", "gone"):
        kept = tmp_path / "kept"
        shutil.copytree(version, kept, symlinks=True)
        if harm == "content":
            (version / "a.sh").chmod(0o755)
            (version / "a.sh").write_text("#!/bin/sh\nevil\n")
        elif harm == "mode":
            (version / "SKILL.md").chmod(0o755)
        elif harm == "file":
            (version / "more").write_text("x")
        elif harm == "link":
            (version / "more").symlink_to("/etc/passwd")
        else:
            shutil.rmtree(version)
        with pytest.raises(FreeholdError, match="The skill charts cannot be used"):
            check_skills(home)
        shutil.rmtree(version, ignore_errors=True)
        kept.rename(version)
        check_skills(home)


def test_a_skill_is_switched_off_and_on_and_removed(library: SkillLibrary, home: Home, tmp_path: Path) -> None:
    add(library, write_skill(tmp_path / "charts"))
    add(library, write_skill(tmp_path / "pdf", "pdf"))
    library.switch("charts", on=False)
    assert [one.name for one in (home.skills / "current").iterdir()] == ["pdf"]
    library.switch("charts", on=True)
    library.remove("pdf")
    assert [one.name for one in (home.skills / "current").iterdir()] == ["charts"]
    assert len(list((home.skills / "versions").iterdir())) == 1
    for act in (library.describe, library.remove):
        with pytest.raises(FreeholdError, match="The skills are: charts") as caught:
            act("pdf")
        assert caught.value.code == "skill.not-found"


def test_a_kill_at_any_moment_leaves_all_of_a_skill_or_nothing(home: Home, tmp_path: Path) -> None:
    write_skill(tmp_path / "charts", files={f"f{number}": b"x" * 1000 for number in range(30)})
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom freehold.home import Home\n"
        "from freehold.skills.library import SkillLibrary\nfrom freehold.skills.sources import read_source\n"
        "home, left = Home(Path(sys.argv[1]), Path(sys.argv[1])), [int(sys.argv[2])]\n"
        "def count(event, args):\n"
        "    if event in ('open', 'os.rename', 'os.symlink', 'os.chmod', 'os.mkdir') and str(home.root) in str(args):\n"
        "        left[0] -= 1\n"
        "        if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "found = read_source(sys.argv[3])\nsys.addaudithook(count)\nSkillLibrary(home).add(found)\n"
    )
    killed = 0
    for step in (1, 2, 4, 6, 9, 15, 40, 70, 72, 73, 74, 75, 76, 78, 80, 1000):
        root = tmp_path / f"home{step}"
        root.mkdir()
        words = [sys.executable, "-c", program, str(root), str(step), str(tmp_path / "charts")]
        done = subprocess.run(words, check=False, env={**os.environ})
        killed += done.returncode == -signal.SIGKILL
        assert done.returncode in (0, -signal.SIGKILL)
        one = Home(root, root)
        check_skills(one)
        library = SkillLibrary(one)
        assert list(library.read_lock().skills) in ([], ["charts"])
        library.add(read_source(str(tmp_path / "charts")))
        check_skills(one)
        assert not list((one.skills / "versions").glob(".new-*"))
    assert killed >= 8


def test_hidden_words_in_instructions_are_refused_and_in_other_files_noted(
    library: SkillLibrary, tmp_path: Path
) -> None:
    bad = {"tag": "\U000e0041", "order": "\u202e", "width": "\u200b", "filler": "\u3164", "bell": "\a"}
    for name, char in bad.items():
        folder = write_skill(tmp_path / name, files={"references/x.md": f"fine\nso {char} what\n".encode()})
        with pytest.raises(FreeholdError, match=r"references/x\.md, line 2 has a hidden character"):
            add(library, folder)
    (one,) = read_source(str(write_skill(tmp_path / "data", files={"x.csv": "a\u202eb".encode()})))
    (finding,) = check_package(one.package)
    assert (finding.level, finding.path, finding.line) == ("noted", "x.csv", 1)
    (one,) = read_source(str(write_skill(tmp_path / "fine", files={"x.md": "Grüße 👩‍💻 日本　語\r\n\tx\n".encode()})))
    assert check_package(one.package) == []


def test_scripts_are_listed_with_what_they_would_run(tmp_path: Path) -> None:
    files = {
        "a.py": b"print(1)\n",
        "b": b"#!/usr/bin/env -S node --harmony\n",
        "c.md": b"text",
        "d.bin": b"\x7fELF....",
        "e.SH": b"x",
    }
    (one,) = read_source(str(write_skill(tmp_path / "charts", files=files)))
    found = {script.path: script.runs for script in list_scripts(one.package)}
    assert found == {
        "a.py": "python3",
        "b": "/usr/bin/env -S node --harmony",
        "d.bin": "a program for Linux",
        "e.SH": "sh",
    }
    assert [finding.path for finding in check_package(one.package)] == ["d.bin"]


def test_of_several_skills_the_owner_names_which(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_skill(tmp_path / name, name)
    found = read_source(str(tmp_path))
    with pytest.raises(FreeholdError, match="There are 3 skills: a, b, c"):
        choose_skills(found, [], every=False)
    with pytest.raises(FreeholdError, match="There is no skill 'd'"):
        choose_skills(found, ["d"], every=False)
    assert [one.package.name for one in choose_skills(found, ["c", "a"], every=False)] == ["c", "a"]
    assert len(choose_skills(found, [], every=True)) == 3


def test_a_lock_that_names_other_places_is_refused(library: SkillLibrary, home: Home, tmp_path: Path) -> None:
    add(library, write_skill(tmp_path / "charts"))
    text = home.skill_lock.read_text()
    digest = library.describe("charts").skill.digest
    for bad in (
        text.replace(digest, "../../etc"),
        text.replace('"charts"', '"../charts"'),
        "{",
        text.replace(": 1", ": 2"),
    ):
        assert bad != text
        home.skill_lock.write_text(bad)
        with pytest.raises(FreeholdError) as caught:
            check_skills(home)
        assert caught.value.code == "skill.bad-lock"
