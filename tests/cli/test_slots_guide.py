"""The commands of the guide to slots do what it says: a newcomer who types them in order meets no error."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.freehold import ROOT

from freehold.cli.main import freehold_command

GUIDE = (ROOT / "docs" / "guides" / "slots.md").read_text()
MANIFEST = '[slots]\nbeads = "local"\npods = "local"\nmemory = "local"\nevents = "local"\n'
ELSEWHERE = (
    "freehold runs",
    "freehold down",
    "freehold events --follow",
    "freehold beads work",
    "freehold beads changes",
)
"""Commands that need a Freehold that runs, or do not end. `tests/e2e` has the first, `tests/test_readme.py` parses all."""


def commands_of(heading: str) -> list[str]:
    """The commands of the shell blocks below a heading, without their comments."""
    part = GUIDE.partition(f"\n{heading}\n")[2]
    part = re.split(r"^# |^## Move", part, flags=re.MULTILINE)[0]
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)).splitlines()
    found = [line.partition("  #")[0].strip() for line in lines]
    assert found
    return [line for line in found if not line.startswith(ELSEWHERE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "freehold.toml").write_text(MANIFEST)
    monkeypatch.setenv("FREEHOLD_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str, **names: str) -> Result:
    for name, value in names.items():
        line = line.replace(name.replace("_", "-"), value)
    done = CliRunner().invoke(freehold_command, shlex.split(line)[1:], catch_exceptions=False)
    assert done.exit_code == 0, (line, done.output)
    return done


def first_id(line: str) -> str:
    return str(json.loads(run(f"{line} --json").stdout)["id"])


def test_work_items(folder: Path) -> None:
    roof = first_id('freehold beads create "Roof" -p 1')
    tiles = first_id('freehold beads create "Tiles"')
    names = {"fh_2k4m9qx": roof, "fh_7hj3c8d": tiles}
    told = {line: run(line, **names).output for line in commands_of("# Beads: work items")}
    ready = next(output for line, output in told.items() if "--ready" in line)
    assert "Mend the roof" in ready
    needed = next(output for line, output in told.items() if "need" in line)
    assert "blocked" in needed
    shown = run(f"freehold beads show {roof}").output
    assert "need added" in shown


def test_documents(folder: Path) -> None:
    (folder / "today.md").write_text("# Today\n")
    told = {line: run(line).output for line in commands_of("# Pods: personal data")}
    assert run("freehold pods get notes/today.md").output == "# Today\n"
    assert next(output for line, output in told.items() if "grant claude" in line) == (
        "claude may read and write notes/\n"
    )
    assert run("freehold pods grants").output == "No agent has access.\n"


def test_memories(folder: Path) -> None:
    memory = first_id('freehold memory add "The meeting is on Wednesday"')
    told = {line: run(line, m_2k4m9qxa7c=memory).output for line in commands_of("# Memory: what agents remember")}
    found = next(output for line, output in told.items() if "search" in line)
    assert "aisle seats" in found
    corrected = next(output for line, output in told.items() if "correct" in line)
    assert "Thursday" in corrected
    assert "meeting" not in run("freehold memory").output


def test_events(folder: Path) -> None:
    told = {line: run(line).output for line in commands_of("# Events: what others are told")}
    assert next(output for line, output in told.items() if "publish" in line).startswith("Published com.example")
    assert next(output for line, output in told.items() if "delivery" in line) == (
        "Events are kept here and sent nowhere.\n"
    )


def test_what_is_exported_is_imported(folder: Path) -> None:
    run('freehold beads create "Kept"')
    run('freehold memory add "Also kept"')
    run("freehold slots export beads -o beads.jsonl")
    run("freehold slots export memory -o memory.jsonl")
    (folder / "home" / "timeline.db").unlink()
    assert "Kept" not in run("freehold beads").output
    run("freehold slots import beads beads.jsonl")
    run("freehold slots import memory memory.jsonl")
    assert "Kept" in run("freehold beads").output
    assert "Also kept" in run("freehold memory").output


def test_the_command_shows_how_each_slot_is_kept(folder: Path) -> None:
    manifest = folder / "home" / "freehold.toml"
    manifest.write_text('[slots.memory]\nmode = "local"\nprivacy = "soft"\nrequired = true\n')
    told = run("freehold slots").output.splitlines()
    assert [" ".join(line.split()) for line in told] == [
        "beads off",
        "pods off",
        "memory local required privacy soft",
        "events off",
        "orchestrator off",
    ]


def test_a_hidden_character_of_an_agent_does_not_reach_the_terminal(folder: Path) -> None:
    run('freehold beads create "Pay \u202eevil"')
    run('freehold memory add "See \u202eevil"')
    run("""freehold events publish com.example.told --data '{"a": "\u202eevil\u009b31m"}'""")
    for command in ("freehold beads", "freehold memory", "freehold events"):
        told = run(command).output
        assert "⟨U+202E⟩evil" in told
        assert "\u202e" not in told
        assert "\u009b" not in told
