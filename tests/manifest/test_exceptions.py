"""Exceptions are granted by name and with a reason, name what they add, and are in force only while they are used."""

import datetime
from pathlib import Path

import pytest

from freehold.keeper.artifacts import find_missing
from freehold.keeper.plan_reader import make_plan
from freehold.manifest import load_manifest
from freehold.manifest.exceptions import list_exceptional, list_in_force
from freehold.manifest.loader import LoadedManifest

TODAY = datetime.date(2026, 11, 16)
BROWSER = "[browser]\nenabled = true\n"
GRANTED = '[security.exceptions.browser]\nreason = "agents read the web"\n'


def load(folder: Path, text: str) -> LoadedManifest:
    (folder / "freehold.toml").write_text(text)
    return load_manifest(folder / "freehold.toml", {}, home=folder)


def test_a_browser_without_its_exception_is_refused(tmp_path: Path) -> None:
    (problem,) = load(tmp_path, BROWSER).errors
    assert (problem.code, "without its own sandbox" in problem.message) == ("E901", True)
    assert load(tmp_path, BROWSER + GRANTED).errors == ()
    (unasked,) = load(tmp_path, BROWSER + "[security.exceptions.browser]\n").errors
    assert unasked.code == "E905"


@pytest.mark.parametrize(
    ("name", "words", "way"),
    [("docker", "would open every wall", "microvm"), ("playwright", "need no exception", "--no-sandbox")],
)
def test_what_is_no_exception_is_refused_with_the_reason_and_the_way_to_go(
    tmp_path: Path, name: str, words: str, way: str
) -> None:
    (problem,) = load(tmp_path, f'[security.exceptions.{name}]\nreason = "please"\n').errors
    assert problem.code == "E903"
    assert words in problem.message
    assert way in problem.hint


def test_an_exception_is_in_force_while_it_is_granted_and_used(tmp_path: Path) -> None:
    (one,) = list_in_force(load(tmp_path, BROWSER + GRANTED).manifest, TODAY)
    assert (one.name, one.reason) == ("browser", "agents read the web")
    assert "Memory: 2GiB for each browser, 4 at most, in computers of their own" in one.adds
    assert "Devices: none" in one.adds
    assert list_in_force(load(tmp_path, GRANTED).manifest, TODAY) == ()
    assert list_in_force(load(tmp_path, BROWSER).manifest, TODAY) == ()
    over = load(tmp_path, BROWSER + GRANTED + 'until = "2026-11-15"\n').manifest
    assert list_in_force(over, TODAY) == ()
    kept = load(tmp_path, BROWSER + 'profile = "kept"\n' + GRANTED).manifest
    assert any("kept-homes/" in words for words in list_in_force(kept, TODAY)[0].adds)


def test_the_artifact_of_an_exception_is_checked_at_boot(tmp_path: Path) -> None:
    plan = make_plan(load(tmp_path, BROWSER + GRANTED))
    assert [one.name for one in plan.exceptions] == ["browser"]
    assert list(find_missing(plan)) == []
    plan = make_plan(load(tmp_path, BROWSER + 'program = "/usr/lib/chromium/none"\n' + GRANTED))
    (missing,) = find_missing(plan)
    assert missing.artifact == "There is no /usr/lib/chromium/none"
    assert missing.needed_by == "[security.exceptions.browser]"
    assert "apt install chromium" in missing.command


def test_a_program_of_the_main_computer_may_be_in_a_mounted_folder(tmp_path: Path) -> None:
    """A browser has a computer of its own, without the mounts."""
    mount = f'[[computer.mounts]]\nsource = "{tmp_path}"\ntarget = "/mnt/programs"\n'
    program = 'program = "/mnt/programs/code-server"\n'
    editor = f'[editor]\nenabled = true\n{program}[security.exceptions.editor]\nreason = "I edit"\n{mount}'
    (missing,) = find_missing(make_plan(load(tmp_path, editor)))
    assert missing.artifact == f"There is no {tmp_path}/code-server"
    (tmp_path / "code-server").touch()
    assert list(find_missing(make_plan(load(tmp_path, editor)))) == []
    (missing,) = find_missing(make_plan(load(tmp_path, BROWSER + program + GRANTED + mount)))
    assert missing.artifact == "There is no /mnt/programs/code-server"


def test_every_exception_says_what_it_risks() -> None:
    assert "browser" in list_exceptional()
    assert all(one.why and one.name == name for name, one in list_exceptional().items())
