"""`freehold run` with a real keeper and computer."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.code.notebook_cells import FIGURE, FRAME
from tests.computer.isolates.wasm_modules import ARGUMENTS, COUNTER
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness

from freehold.cli._code_file import read_limits
from freehold.computer import IsolateLimits

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
    ended, raised = done.stderr.splitlines()
    assert (done.returncode, ended) == (124, "The code was ended at its limit: wall_time.")
    assert raised == "To raise it: --timeout 600"


def test_the_limits_of_a_file_of_code_are_raised_by_its_owner_only(harness: FreeholdHarness, tmp_path: Path) -> None:
    """A time limit is raised as well as lowered: more than the minute that code has by itself."""
    file = tmp_path / "large.py"
    file.write_text("print(len(bytearray(200 << 20)) >> 20)")
    refused = harness.run("run", "--python", str(file))
    assert (refused.returncode, refused.stdout) == (124, "")
    assert refused.stderr == "The code was ended at its limit: memory.\nTo raise it: --limit memory=1GiB\n"
    assert harness.run("run", "--limit", "memory=512MiB", "--python", str(file)).stdout == "200\n"
    assert read_limits((), None) == IsolateLimits()
    raised = read_limits(("processor=5m", "output=2MiB", "open_files=200"), 3600)
    assert raised == IsolateLimits(processor=300, wall_time=3600, output=2 << 20, open_files=200)


@pytest.mark.parametrize("limit", ["memory=much", "memory", "processor=-1s", "colour=red", "open_files=few"])
def test_a_limit_that_is_none_is_refused(harness: FreeholdHarness, limit: str) -> None:
    done = harness.run("run", "--limit", limit, "--python", "-")
    assert done.returncode == 2
    assert limit in done.stderr


def test_files_go_to_the_code_and_those_that_were_named_come_back(harness: FreeholdHarness, tmp_path: Path) -> None:
    """Whatever else the code makes stays with it, and no name leads out of the folder."""
    (tmp_path / "data.csv").write_text("city\nBern\n")
    code = "text = open('data.csv').read()\nfor name in ('kept.txt', 'other.txt'): open(name, 'w').write(text.upper())"
    options = ("--input", str(tmp_path / "data.csv"), "--python", "-")
    place = tmp_path / "place"
    place.mkdir()

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "freehold.cli.main", "run", *words, *options]
        return subprocess.run(
            argv,
            env=harness.environment,
            cwd=place,
            input=code,
            capture_output=True,
            text=True,
            timeout=PROCESS_TIMEOUT,
        )

    done = run("--output", "kept.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "kept.txt").read_text() == "CITY\nBERN\n"
    assert [one.name for one in place.iterdir()] == ["kept.txt"]
    missing = run("--output", "none.txt", "--output", "other.txt")
    assert (missing.returncode, missing.stderr) == (1, "The code has not made none.txt.\n")
    assert (place / "other.txt").exists()
    away = run("--output", "../away.txt")
    assert away.returncode == 2
    assert "--output ../away.txt" in away.stderr
    assert not (tmp_path / "away.txt").exists()


def test_what_the_code_displays_is_printed(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "shown.js"
    file.write_text("display(table([{city: 'Bern', people: 134591}])); display({a: 1}); display('text')")
    shown = harness.run("run", "--javascript", str(file))
    assert shown.stdout.splitlines() == ["city\tpeople", "Bern\t134591", '{"a":1}', '"text"']
    file = tmp_path / "shown.py"
    file.write_text(f"{FRAME}{FIGURE}print('first')\ndisplay(Figure())\ndisplay(DataFrame())")
    done = harness.run("run", "--python", str(file))
    first, *rows = done.stdout.splitlines()
    assert first == "first"
    assert [row.split("\t")[-2:] for row in rows] == [["city", "people"], ["Bern", "134591"], ["Köln", "null"]]
    figure, most = done.stderr.splitlines()
    assert figure.startswith("[image/svg+xml, ")
    assert most == "The first 2 of 2000 rows."


def test_a_package_that_is_not_prepared_is_refused(harness: FreeholdHarness, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("print('never')")
    done = harness.run("run", "--package", "no_such_package", "--python", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert "The package 'no_such_package' is not prepared" in done.stderr


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--wasm"),
        (("--python", "a.py", "--javascript", "b.js"), "--wasm"),
        (("--call", "f()", "ls"), "--wasm"),
        (("--package", "pandas", "ls"), "--package"),
        (("--limit", "memory=1GiB", "ls"), "--limit"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    harness: FreeholdHarness, words: tuple[str, ...], said: str
) -> None:
    done = harness.run("run", *words)
    assert done.returncode == 2
    assert said in done.stderr
