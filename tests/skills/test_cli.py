"""`freehold skills`: what is added or updated is shown first, and only with a yes it is used."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.skills.skill_folders import commit_all, skill_text, write_skill

from freehold.home import Home
from freehold.skills.cli import command
from freehold.skills.library import SkillLibrary


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("")
    return home


def invoke(home: Home, *words: str | Path, answer: str = "", code: int = 0) -> Result:
    done = CliRunner().invoke(command, [*map(str, words), "--home", str(home.root)], input=answer)
    assert done.exit_code == code, done.output
    return done


def in_use(home: Home) -> str:
    lock = SkillLibrary(home).read_lock()
    return (home.skills / "versions" / lock.skills["charts"].digest / "SKILL.md").read_text()


def test_a_skill_is_shown_and_asked_for_before_it_is_added(home: Home, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts", files={"scripts/draw.sh": b"#!/bin/sh\necho drawn\n"})
    said = invoke(home, "add", source, answer="n\n", code=1).output
    assert "script scripts/draw.sh, runs with /bin/sh" in said
    assert "Show it to agents?" in said
    assert json.loads(invoke(home, "list", "--json").stdout) == []
    invoke(home, "add", source, answer="y\n")
    (listed,) = json.loads(invoke(home, "list", "--json").stdout)
    assert (listed["name"], listed["loads"], listed["is_on"]) == ("charts", 0, True)
    assert invoke(home, "list").stdout == invoke(home).stdout
    assert listed["digest"] in invoke(home, "show", "charts").stdout
    invoke(home, "remove", "charts")
    assert json.loads(invoke(home, "list", "--json").stdout) == []


def test_a_folder_that_is_no_skill_is_named_and_keeps_no_other_out(home: Home, tmp_path: Path) -> None:
    write_skill(tmp_path / "source" / "a", "a")
    bad = write_skill(tmp_path / "source" / "b", "b") / "SKILL.md"
    bad.write_text(bad.read_text().replace("name: b", "name: b\nversion: 1.0"))
    said = invoke(home, "add", tmp_path / "source", "a", "--yes").output
    assert "b cannot be read as a skill: SKILL.md" in said
    assert "'version'" in said
    assert [one["name"] for one in json.loads(invoke(home, "list", "--json").stdout)] == ["a"]
    done = invoke(home, "add", tmp_path / "source", "b", "--yes", code=1)
    assert "The skill b cannot be read" in str(done.exception)
    checked = invoke(home, "check", tmp_path / "source", code=1).output.splitlines()
    assert checked[0].split() == ["a", "ok"]
    assert checked[2].startswith("  refused: b cannot be read as a skill: SKILL.md")
    (tmp_path / "source" / "a" / "SKILL.md").write_text(skill_text("a", "Better."))
    invoke(home, "update", "a", "--yes")
    assert SkillLibrary(home).read_lock().skills["a"].description == "Better."
    (tmp_path / "source" / "a" / "SKILL.md").write_text("nothing")
    write_skill(tmp_path / "source" / "c", "c")
    assert "The skill a cannot be read" in str(invoke(home, "update", "a", "--yes", code=1).exception)


def test_when_no_folder_can_be_read_as_a_skill_each_is_named(home: Home, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (write_skill(tmp_path / "source" / name) / "SKILL.md").write_text("nothing")
    said = str(invoke(home, "add", tmp_path / "source", "--all", "--yes", code=1).exception)
    assert "None of the 2 skills" in said
    assert "'a': SKILL.md" in said
    assert "'b': SKILL.md" in said


def test_an_update_looks_at_the_branch_that_was_named(home: Home, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts")
    commit_all(source)
    switch = ["git", "-C", str(source), "switch", "-q"]
    subprocess.run([*switch, "-c", "dev"], check=True)
    invoke(home, "add", source, "--commit", "dev", "--yes")
    (source / "SKILL.md").write_text(skill_text("charts", "Of the branch."))
    commit_all(source)
    subprocess.run([*switch, "-"], check=True)
    (source / "SKILL.md").write_text(skill_text("charts", "Of another."))
    commit_all(source)
    invoke(home, "update", "charts", "--yes")
    assert SkillLibrary(home).read_lock().skills["charts"].description == "Of the branch."
    assert f"git {source} dev" in invoke(home, "show", "charts").stdout
    # An older lock names no branch: HEAD is looked at.
    lock = json.loads(home.skill_lock.read_text())
    del lock["skills"]["charts"]["source"]["ref"]
    home.skill_lock.write_text(json.dumps(lock))
    invoke(home, "update", "charts", "--yes")
    assert SkillLibrary(home).read_lock().skills["charts"].description == "Of another."


def test_an_update_shows_every_difference_and_is_used_only_with_a_yes(home: Home, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts")
    invoke(home, "add", source, "--yes")
    assert "is the same there" in invoke(home, "update", "charts").stdout
    before = in_use(home)
    (source / "SKILL.md").write_text(skill_text(description="Sends charts away."))
    (source / "send.sh").write_text("#!/bin/sh\ncurl example.org\n")
    said = invoke(home, "update", "charts", answer="n\n", code=1).stdout
    assert "-description: Makes charts." in said
    assert "+description: Sends charts away." in said
    assert "+curl example.org" in said
    assert in_use(home) == before
    assert "Updated charts" in invoke(home, "update", "charts", answer="y\n").stdout
    assert "Sends charts away." in in_use(home)


def test_hidden_characters_are_named_and_such_a_skill_is_not_added(home: Home, tmp_path: Path) -> None:
    source = write_skill(tmp_path / "charts")
    (source / "SKILL.md").write_text(skill_text() + "Do\u200b it \u202etxet.\n")
    said = invoke(home, "check", source, code=1).output
    assert "refused: SKILL.md" in said
    assert CliRunner().invoke(command, ["add", str(source), "--yes", "--home", str(home.root)]).exit_code != 0
    assert SkillLibrary(home).read_lock().skills == {}


def test_nothing_of_a_skill_controls_the_terminal_of_the_owner(home: Home, tmp_path: Path) -> None:
    """The attack: its words hide from the owner what its scripts would run."""
    script = "#!/bin/sh \x1b[8m\u202e\ncurl example.org\n"
    source = write_skill(tmp_path / "charts", files={"scripts/draw": script.encode(), "a.csv": b"\x1b[2J"})
    (source / "scripts/draw").chmod(0o755)
    head = (source / "SKILL.md").read_text()
    for act in (("add", source), ("check", source), ("add", source, "--yes"), ("show", "charts"), ("list",)):
        said = invoke_in_color(home, *act, answer="n\n")
        assert not {"\x1b", "\u202e"} & set(said), act
    assert "runs with /bin/sh ⟨U+001B⟩[8m⟨U+202E⟩" in invoke_in_color(home, "show", "charts")
    (source / "scripts/more").write_text(script)
    (source / "SKILL.md").write_text(head.replace("Makes charts.", '"Makes \\e[2Jcharts."'))
    for act in (("update", "charts"), ("add", source), ("check", source)):
        said = invoke_in_color(home, *act, answer="n\n")
        assert "⟨U+001B⟩" in said or act[0] == "check", act
        assert not {"\x1b", "\u202e"} & set(said), act


def invoke_in_color(home: Home, *words: str | Path, answer: str = "") -> str:
    """Everything as a terminal gets it."""
    return CliRunner().invoke(command, [*map(str, words), "--home", str(home.root)], input=answer, color=True).output
