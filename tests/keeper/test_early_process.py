"""The gateway loads its modules while the keeper boots, and touches nothing before the keeper lets it."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness
from tests.support.processes import read_command

from freehold.home import find_home
from freehold.keeper.started_process import EarlyProcess, gateway_command, program_environment

STARTER = """
import sys, time
from freehold.home import find_home
from freehold.keeper.started_process import EarlyProcess, gateway_command, program_environment
early = EarlyProcess(gateway_command(find_home(sys.argv[1])), program_environment())
print(early._started.process.pid, flush=True)
time.sleep(1000)
"""


def has_loaded(pid: int) -> bool:
    """Whether it has the modules of the manifest and of databases."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return "_pydantic_core" in maps and "_sqlite3" in maps


def test_a_gateway_that_waits_makes_nothing_and_ends_when_it_is_not_wanted(tmp_path: Path) -> None:
    home = find_home(tmp_path / "home")
    early = EarlyProcess(gateway_command(home), program_environment())
    try:
        assert early._started is not None
        process = early._started.process
        wait_until(lambda: has_loaded(process.pid))
        assert process.poll() is None
        assert not home.root.exists()
    finally:
        early.close()
    early.close()
    assert process.returncode == -signal.SIGKILL
    assert early.take() is None


def test_a_gateway_that_waits_ends_with_a_keeper_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE) as starter:
        try:
            assert starter.stdout is not None
            gateway = int(starter.stdout.readline())
            wait_until(lambda: read_command(gateway))  # it has none for a moment while it becomes another program
        finally:
            starter.kill()
    wait_until(lambda: not read_command(gateway))


def test_a_gateway_that_ended_while_it_waited_is_started_again(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper(module="tests.keeper.early_end") as keeper:
        keeper.next("ready")
        assert harness.programs()["gateway"].starts == 2
        assert keeper.stop() == 0
