"""`freehold routines`, without a Freehold that runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.errors import FreeholdError
from freehold.routines.cli import command

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "freehold.toml").write_text('[routines.morning]\ncron = "0 7 * * *"\nprompt = "Report."\n')

    def invoke(*words: str) -> str:
        result = CliRunner().invoke(command, [*words, "--home", str(tmp_path)])
        if isinstance(result.exception, FreeholdError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return invoke


def test_a_routine_is_added_listed_run_paused_resumed_and_removed(run: Run) -> None:
    added = run("add", "pulse", "--every", "30m", "--checklist", "HEARTBEAT.md", "--budget", "0.5", "--retries", "2")
    assert added.startswith("Added pulse.")
    assert len(added.splitlines()) == 11
    assert [line.split()[:3] for line in run().splitlines()] == [["morning", "cron", "on"], ["pulse", "every", "on"]]
    shown = run("show", "pulse")
    assert "every = 1800" in shown
    assert "budget = 0.5" in shown
    assert "is due" in run("run", "pulse", "--text", "hello")
    (logged,) = json.loads(run("log", "--json"))
    assert (logged["routine"], logged["state"], logged["data"]) == ("pulse", "due", {"text": "hello"})
    assert run("list").splitlines()[1].endswith("…")
    run("pause", "pulse")
    assert json.loads(run("list", "--json"))[1]["state"] == "paused"
    assert run("resume", "pulse").startswith("Resumed pulse. It begins ")
    run("remove", "pulse")
    assert len(run("list").splitlines()) == 1
    assert "The routine was removed" in run("log")


def test_a_dry_run_shows_ten_times_and_adds_nothing(run: Run) -> None:
    options = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--command", "true")
    times = run("add", "nightly", *options, "--dry-run").splitlines()
    assert len(times) == 10
    assert all(":" in line for line in times)
    assert len(json.loads(run("list", "--json"))) == 1
    seconds = run("add", "often", "--every", "10s", "--command", "true", "--dry-run").splitlines()
    assert len(set(seconds)) == 10


def test_what_cannot_be_a_routine_is_refused_with_the_reason(run: Run) -> None:
    wrong = {
        ("--every", "30m"): "one piece of work",
        ("--every", "30m", "--cron", "* * * * *", "--prompt", "x"): "cron and every",
        ("--every", "ten", "--prompt", "x"): "every: 'ten' is not a duration",
        ("--cron", "0 7 * * *", "--zone", "Mars", "--prompt", "x"): "time zone",
        ("--every", "1h", "--prompt", "!rm -rf /"): "shell command",
        ("--every", "1h", "--command", "echo {{ body }}"): "standard input",
        ("--every", "1h", "--prompt", "x", "--budget", "much"): "not a number",
        ("--files", "../x", "--prompt", "x"): "workspace",
        ("--every", "1h", "--prompt", "x", "--hours", "8-22"): "08:00-22:00",
        ("--at", "9999-12-31T23:59-14:00", "--prompt", "x"): "1970 to 2999",
    }
    for options, word in wrong.items():
        with pytest.raises(FreeholdError) as caught:
            run("add", "x", *options)
        assert word in f"{caught.value.message} {caught.value.hint}", options
    with pytest.raises(FreeholdError):
        run("remove", "morning")


def test_the_secret_of_a_webhook_is_shown_once_and_kept_in_the_vault(run: Run, tmp_path: Path) -> None:
    from freehold.egress.vault import Vault

    run("add", "hook", "--webhook", "--prompt", "Look.")
    made = json.loads(run("webhook", "hook", "--json"))
    assert made["url"].endswith("/v1/hooks/hook")
    assert Vault(tmp_path / "vault").get("routine.hook").reveal() == made["secret"]
    assert made["secret"] not in run("show", "hook")
    run("remove", "hook")
    assert Vault(tmp_path / "vault").list() == []
