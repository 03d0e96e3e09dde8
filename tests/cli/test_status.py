"""`status`, `restart` and `logs` of a Freehold that runs, and of one that does not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

pytestmark = pytest.mark.shared_processes  # restarts change which processes the module's Freehold has


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("status"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness
        assert keeper.stop() == 0


def test_status_shows_programs_memory_ports_isolation_and_events(harness: FreeholdHarness) -> None:
    shown = harness.run("status")
    assert shown.returncode == 0
    for words in (
        "ready",
        "gateway",
        "computer",
        "keeper",
        f"127.0.0.1:{harness.gateway_port}",
        "bubblewrap",
        "boot.finished",
        "MB",
    ):
        assert words in shown.stdout


def test_status_as_json_is_complete(harness: FreeholdHarness) -> None:
    status = json.loads(harness.run("status", "--json").stdout)
    assert status["ready"]
    assert {program["name"]: program["state"] for program in status["programs"]} == {
        "gateway": "ready",
        "computer": "ready",
    }
    assert status["isolation"]["backend"] == "bubblewrap"
    assert status["events"]
    moments = [status["since"], status["keeper"]["since"], *(program["since"] for program in status["programs"])]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment) for moment in moments)


def test_status_says_that_the_kill_switch_is_on(harness: FreeholdHarness) -> None:
    assert json.loads(harness.run("status", "--json").stdout)["kill_switch"] is None
    assert harness.run("stop", "it deletes files").returncode == 0
    try:
        shown = harness.run("status").stdout
        stop = json.loads(harness.run("status", "--json").stdout)["kill_switch"]
    finally:
        assert harness.run("stop", "--lift").returncode == 0
    assert "The kill switch is on since" in shown
    assert "it deletes files" in shown
    assert "freehold stop --lift" in shown
    assert (stop["who"], stop["why"]) == ("owner", "it deletes files")
    assert "kill switch" not in harness.run("status").stdout


@pytest.mark.parametrize("program", ["gateway", "computer"])
def test_restart_restarts_one_program_and_not_the_others(harness: FreeholdHarness, program: str) -> None:
    before = {name: one.pid for name, one in harness.programs().items()}
    done = harness.run("restart", program)
    assert done.returncode == 0, done.stderr
    after = {name: one.pid for name, one in harness.programs().items()}
    other = ({"gateway", "computer"} - {program}).pop()
    assert after[program] != before[program]
    assert after[other] == before[other]


def test_restart_of_an_unknown_program_lists_the_programs(harness: FreeholdHarness) -> None:
    done = harness.run("restart", "gatway")
    assert done.returncode == 1
    assert "computer, gateway" in done.stderr


def test_a_restart_with_a_broken_manifest_leaves_the_gateway_running(harness: FreeholdHarness) -> None:
    before = {name: one.pid for name, one in harness.programs().items()}
    harness.home.manifest.write_text('[models.local]\nknd = "openai"\n')
    try:
        done = harness.run("restart", "gateway")
    finally:
        harness.home.manifest.unlink()
    assert done.returncode == 1
    assert "There is no key models.local.knd" in done.stderr
    assert {name: one.pid for name, one in harness.programs().items()} == before


def test_logs_are_shown_for_people_and_for_scripts(harness: FreeholdHarness) -> None:
    assert "boot.finished" in harness.run("logs", "keeper", "-n", "100").stdout
    lines = harness.run("logs", "--since", "1h", "--json").stdout.splitlines()
    assert {json.loads(line)["program"] for line in lines} >= {"keeper"}


def test_status_without_a_keeper_says_how_to_start_one(tmp_path: Path) -> None:
    done = FreeholdHarness(tmp_path).run("status")
    assert done.returncode == 1
    assert "freehold up" in done.stderr


def test_a_preview_of_a_port_where_nothing_listens_says_so(harness: FreeholdHarness) -> None:
    """The address is printed nevertheless, because the program may be about to start."""
    opened = harness.run("preview", "4000")
    assert opened.returncode == 0, opened.stderr
    assert opened.stdout.startswith("http://4000.preview.")
    assert "No program listens on port 4000 in the computer yet" in opened.stderr
    assert "revoke preview-4000-" in opened.stderr
    assert json.loads(harness.run("preview", "4000", "--json").stdout)["listening"] is False
