"""`freehold run` with a real keeper and computer."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.computer.isolates.wasm_modules import ARGUMENTS, COUNTER
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("run"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness


def test_output_and_exit_code_are_those_of_the_command(harness: FreeholdHarness) -> None:
    done = harness.run("run", "echo out; echo err >&2; pwd; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n/workspace\n", "err\n")
    assert harness.run("run", "printf", "%s|", "a b", "$HOME").stdout == "a b|$HOME|"


def test_piped_input_arrives_complete(harness: FreeholdHarness) -> None:
    argv = [sys.executable, "-m", "freehold.cli.main", "run", "wc", "-c"]
    sent = b"x" * 3_000_000
    done = subprocess.run(argv, env=harness.environment, input=sent, capture_output=True, timeout=PROCESS_TIMEOUT)
    assert done.stdout == b"3000000\n"


def test_history_records_what_it_changed(harness: FreeholdHarness) -> None:
    assert harness.run("run", "echo hello > /workspace/made.txt").returncode == 0
    entries = json.loads(harness.run("log", "--json").stdout)
    rows = entries["entries"] if isinstance(entries, dict) else entries
    assert rows[0]["why"] == "echo hello > /workspace/made.txt"
    assert rows[0]["added"] == 1
    assert harness.run("undo").returncode == 0
    assert not (harness.home.workspace / "made.txt").exists()


def test_an_interrupt_reaches_the_command(harness: FreeholdHarness) -> None:
    argv = [
        sys.executable,
        "-m",
        "freehold.cli.main",
        "run",
        "trap 'echo caught; exit 3' INT; echo up; sleep 100 & wait",
    ]
    with subprocess.Popen(argv, env=harness.environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.read() == b"caught\n"
    assert program.returncode == 3


def test_a_time_limit_ends_the_command(harness: FreeholdHarness) -> None:
    done = harness.run("run", "--timeout", "0.5", "sleep", "100")
    assert done.returncode == 124


def test_the_error_names_a_missing_program(harness: FreeholdHarness) -> None:
    done = harness.run("run", "no-such-program", "x")
    assert done.returncode == 1
    assert "no-such-program" in done.stderr


def test_a_python_file_runs_in_an_isolate(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "report.py"
    file.write_text("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(5)")
    done = harness.run("run", "--python", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (5, "out\n", "err\n")


def test_an_exception_of_the_file_is_shown_with_its_line(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("x = 1\nopen('/workspace')")
    done = harness.run("run", "--python", str(file))
    assert done.returncode == 1
    assert f'File "{file}", line 2' in done.stderr
    assert "PermissionError" in done.stderr


def test_a_file_of_code_has_limits(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "endless.py"
    file.write_text("while True: pass")
    done = harness.run("run", "--timeout", "0.5", "--python", str(file))
    assert (done.returncode, done.stderr) == (124, "The code was ended at its limit: wall_time.\n")


def test_a_module_runs_with_its_arguments_and_a_call_prints_its_value(harness: FreeholdHarness, tmp_path: Path) -> None:
    module = tmp_path / "counter.wat"
    module.write_text(COUNTER)
    called = harness.run("run", "--wasm", str(module), "--call", "add(40, 2)")
    assert (called.stdout, called.returncode) == ("42\n", 0)
    module.write_text(ARGUMENTS)
    assert harness.run("run", "--wasm", str(module), "one", "--two").returncode == 3


def test_the_words_after_a_file_are_its_arguments(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "words.py"
    file.write_text("import sys; print(sys.argv[1:])")
    assert harness.run("run", "--python", str(file), "one", "--two").stdout == "['one', '--two']\n"


@pytest.mark.parametrize("words", [(), ("--python", "a.py", "--javascript", "b.js"), ("--call", "f()", "ls")])
def test_options_that_do_not_fit_together_are_refused(harness: FreeholdHarness, words: tuple[str, ...]) -> None:
    done = harness.run("run", *words)
    assert done.returncode == 2
    assert "--wasm" in done.stderr
