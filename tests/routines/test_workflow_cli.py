"""`freehold workflow`, without a Freehold that runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.errors import FreeholdError
from freehold.routines.clock import WallClock
from freehold.routines.workflows.cli import command
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowStore
from freehold.timeline import Timeline

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "freehold.toml").write_text("[workflows]\nbudget = 2.0\n")

    def invoke(*words: str) -> str:
        result = CliRunner().invoke(command, [*words, "--home", str(tmp_path)])
        if isinstance(result.exception, FreeholdError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return invoke


def test_a_workflow_is_begun_shown_answered_signalled_cancelled_and_retried(run: Run, tmp_path: Path) -> None:
    assert run().startswith("There are no workflows")
    made = json.loads(run("run", "flows/nightly.py", "--data", '{"week": 12}', "--json"))
    id = made["id"]
    assert (made["file"], made["state"], made["budget"]) == ("flows/nightly.py", "due", 2.0)
    with Timeline(tmp_path / "timeline.db") as timeline:
        store = WorkflowStore(TimelineJournal(timeline), WallClock())
        store.claim(id, "text", "here")
        step, _ = store.steps.begin_step(
            id, StepAsked("1", "step", "fetch", {"function": "fetch", "arguments": []}), 10, "here"
        )
        store.steps.end_step(step, StepEnd(7, cost=0.25))
        asked = {"question": "Commit\u202e?\n one.txt", "choices": ["yes", "no"]}
        store.steps.begin_step(id, StepAsked("2", "ask", "Commit\u202e?\n one.txt", asked), 10, "here")
    shown = run("show", id)
    assert "✓ step     fetch" in shown
    assert f"freehold workflow answer {id} 2" in shown
    assert "\u202e" not in shown
    assert "ask      Commit⟨U+202E⟩?\n           Commit⟨U+202E⟩?\n            one.txt\n" in shown
    with pytest.raises(FreeholdError, match="not one of the answers"):
        run("answer", id, "2", "perhaps")
    run("answer", id, "2", "yes")
    assert [step["result"] for step in json.loads(run("show", id, "--json"))["steps"]] == [7, "yes"]
    run("signal", id, "org.example.paid", "--data", '{"order": 7}')
    assert "is cancelled" in run("cancel", id)
    assert "cancelled" in run("list")
    run("retry", id, "--from", "2")
    assert json.loads(run("list", "--json"))[0]["state"] == "due"
    assert len(json.loads(run("show", id, "--json"))["steps"]) == 1


def test_a_file_may_be_named_by_its_place_on_this_machine(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("run", str(tmp_path / "workspace/a.py"), "--json"))
    assert made["file"] == "a.py"
    for words in (("run", "/etc/passwd.py"), ("run", "a.py", "--data", "7"), ("run", "a.py", "--budget", "-1")):
        with pytest.raises(FreeholdError):
            run(*words)
