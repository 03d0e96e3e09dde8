"""`freehold run`, with a keeper and a computer that really run."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.keeper.running import PATIENCE, Stead

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def stead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stead]:
    stead = Stead(tmp_path_factory.mktemp("run"))
    with stead.keeper() as keeper:
        keeper.next("ready")
        yield stead


def test_streams_and_exit_code_are_the_commands_own(stead: Stead) -> None:
    done = stead.run("run", "echo out; echo err >&2; pwd; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n/workspace\n", "err\n")
    assert stead.run("run", "printf", "%s|", "a b", "$HOME").stdout == "a b|$HOME|"


def test_input_that_is_piped_in_arrives_whole(stead: Stead) -> None:
    argv = [sys.executable, "-m", "freehold.cli.main", "run", "wc", "-c"]
    sent = b"x" * 3_000_000
    done = subprocess.run(argv, env=stead.environment, input=sent, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"3000000\n"


def test_history_marks_what_it_changed(stead: Stead) -> None:
    assert stead.run("run", "echo hello > /workspace/made.txt").returncode == 0
    entries = json.loads(stead.run("log", "--json").stdout)
    rows = entries["entries"] if isinstance(entries, dict) else entries
    assert rows[0]["why"] == "echo hello > /workspace/made.txt"
    assert rows[0]["added"] == 1
    assert stead.run("undo").returncode == 0
    assert not (stead.home.workspace / "made.txt").exists()


def test_an_interrupt_reaches_the_command(stead: Stead) -> None:
    argv = [
        sys.executable,
        "-m",
        "freehold.cli.main",
        "run",
        "trap 'echo caught; exit 3' INT; echo up; sleep 100 & wait",
    ]
    with subprocess.Popen(argv, env=stead.environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.read() == b"caught\n"
    assert program.returncode == 3


def test_a_time_limit_ends_it(stead: Stead) -> None:
    done = stead.run("run", "--timeout", "0.5", "sleep", "100")
    assert done.returncode == 124


def test_a_program_that_is_not_there_is_named(stead: Stead) -> None:
    done = stead.run("run", "no-such-program", "x")
    assert done.returncode == 1
    assert "no-such-program" in done.stderr
