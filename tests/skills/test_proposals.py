"""Agents may propose skills in the workspace. Nothing there leads out of it, and nothing is used before the owner adopts it."""

import os
from pathlib import Path

import pytest
from tests.skills.skill_folders import skill_text, write_skill

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills.library import SkillLibrary
from freehold.skills.proposals import PROPOSALS, read_proposals


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.workspace.mkdir(parents=True)
    return home


def test_a_proposal_is_adopted_as_it_was_read(home: Home) -> None:
    folder = write_skill(home.workspace / PROPOSALS / "charts", files={"scripts/a.sh": b"#!/bin/sh\n"})
    library = SkillLibrary(home)
    (found,) = library.read(PROPOSALS)
    assert (found.source.kind, found.source.part) == ("proposal", "charts")
    assert library.read_lock().skills == {}
    (folder / "SKILL.md").write_text(skill_text(description="Something else."))
    library.add([found])
    assert library.describe("charts").skill.description == "Makes charts."
    update = library.find_update("charts", library.read(PROPOSALS))
    assert update is not None


@pytest.mark.parametrize("level", ["workspace", "proposals", "skill", "file"])
def test_a_link_to_files_of_the_host_is_never_followed(home: Home, tmp_path: Path, level: str) -> None:
    secret = write_skill(tmp_path / "host" / PROPOSALS / "charts", files={"secret.md": b"the owner's"})
    place = home.workspace / PROPOSALS / "charts"
    if level == "workspace":
        home.workspace.rmdir()
        home.workspace.symlink_to(tmp_path / "host")
    elif level == "proposals":
        place.parent.symlink_to(secret.parent)
    elif level == "skill":
        place.parent.mkdir()
        place.symlink_to(secret)
    else:
        write_skill(place)
        (place / "more.md").symlink_to(secret / "secret.md")
    found, refused = read_proposals(home.workspace)
    assert found == []
    assert set(refused) <= {"charts"}
    with pytest.raises(FreeholdError, match="no proposal"):
        SkillLibrary(home).read(PROPOSALS)


def test_strange_things_are_refused_with_the_reason_and_do_not_hide_others(home: Home) -> None:
    root = home.workspace / PROPOSALS
    write_skill(root / "good", "good")
    write_skill(root / "other-name", "charts")
    (root / "no-head").mkdir()
    (root / "fifo").mkdir()
    os.mkfifo(root / "fifo" / "SKILL.md")
    for number in range(60):
        (root / "wide" / f"{number}" / "deep").mkdir(parents=True)
    for number in range(2100):
        (root / "wide" / f"folder{number}").mkdir()
    write_skill(root / "wide", "wide")
    found, refused = read_proposals(home.workspace)
    assert [one.package.name for one in found] == ["good"]
    assert set(refused) == {"other-name", "no-head", "fifo", "wide"}
    assert "special file" in refused["fifo"]
    assert "more than 1000 files" in refused["wide"]
