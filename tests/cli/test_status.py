"""`status`, `restart` and `logs` of a Freehold that runs, and of one that does not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.keeper.running import Stead

pytestmark = pytest.mark.shared_processes  # restarts change which processes the module's Freehold has


@pytest.fixture(scope="module")
def stead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stead]:
    stead = Stead(tmp_path_factory.mktemp("status"))
    with stead.keeper() as keeper:
        keeper.next("ready")
        yield stead
        assert keeper.stop() == 0


def test_status_shows_programs_memory_ports_isolation_and_events(stead: Stead) -> None:
    shown = stead.run("status")
    assert shown.returncode == 0
    for words in (
        "ready",
        "gateway",
        "computer",
        "keeper",
        f"127.0.0.1:{stead.gateway_port}",
        "bubblewrap",
        "boot.finished",
        "MB",
    ):
        assert words in shown.stdout


def test_status_as_json_is_the_whole_truth(stead: Stead) -> None:
    status = json.loads(stead.run("status", "--json").stdout)
    assert status["ready"]
    assert {program["name"]: program["state"] for program in status["programs"]} == {
        "gateway": "ready",
        "computer": "ready",
    }
    assert status["isolation"]["backend"] == "bubblewrap"
    assert status["events"]


@pytest.mark.parametrize("program", ["gateway", "computer"])
def test_restart_gives_a_program_a_new_life_and_leaves_the_other_alone(stead: Stead, program: str) -> None:
    before = {one["name"]: one["pid"] for one in stead.call("status")["programs"]}
    done = stead.run("restart", program)
    assert done.returncode == 0, done.stderr
    after = {one["name"]: one["pid"] for one in stead.call("status")["programs"]}
    other = ({"gateway", "computer"} - {program}).pop()
    assert after[program] != before[program]
    assert after[other] == before[other]


def test_restart_of_what_there_is_not_names_what_there_is(stead: Stead) -> None:
    done = stead.run("restart", "gatway")
    assert done.returncode == 1
    assert "computer, gateway" in done.stderr


def test_a_gateway_that_runs_is_not_given_up_for_a_manifest_it_could_not_start_with(stead: Stead) -> None:
    before = {one["name"]: one["pid"] for one in stead.call("status")["programs"]}
    stead.home.manifest.write_text('[models.local]\nknd = "openai"\n')
    try:
        done = stead.run("restart", "gateway")
    finally:
        stead.home.manifest.unlink()
    assert done.returncode == 1
    assert "There is no key models.local.knd" in done.stderr
    assert {one["name"]: one["pid"] for one in stead.call("status")["programs"]} == before


def test_logs_are_shown_for_people_and_for_scripts(stead: Stead) -> None:
    assert "boot.finished" in stead.run("logs", "keeper", "-n", "100").stdout
    lines = stead.run("logs", "--since", "1h", "--json").stdout.splitlines()
    assert {json.loads(line)["program"] for line in lines} >= {"keeper"}


def test_status_without_a_keeper_says_how_to_start_one(tmp_path: Path) -> None:
    done = Stead(tmp_path).run("status")
    assert done.returncode == 1
    assert "freehold up" in done.stderr


def test_a_preview_of_a_port_where_nothing_listens_says_so(stead: Stead) -> None:
    """The address is given all the same: what it shows may be about to start."""
    opened = stead.run("preview", "4000")
    assert opened.returncode == 0, opened.stderr
    assert opened.stdout.startswith("http://4000.preview.")
    assert "Nothing listens on port 4000 in the computer yet" in opened.stderr
    assert "revoke preview-4000-" in opened.stderr
    assert json.loads(stead.run("preview", "4000", "--json").stdout)["listening"] is False
