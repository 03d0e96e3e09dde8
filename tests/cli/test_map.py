"""`freehold map`: scripts over inputs, killed and stopped in the middle."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import wait_until

MAP = (sys.executable, "-m", "freehold.cli.main", "map")
SLOW = 'sleep 0.2; echo "$1"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder. A process that is killed leaves its temporary folders, which are removed here."""
    monkeypatch.chdir(tmp_path)
    with tempfile.TemporaryDirectory(prefix="map-") as temporary:  # the path of a socket must be short
        monkeypatch.setenv("TMPDIR", temporary)
        yield tmp_path


def run_map(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MAP, *words], input=stdin, capture_output=True, text=True, check=False, timeout=120)


def read_events(folder: Path) -> list[dict[str, Any]]:
    journal = folder / "journal.jsonl"
    if not journal.exists():
        return []
    whole = journal.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()[1:]]


def count_ends(folder: Path, event: str) -> Counter[int]:
    return Counter(one["task"] for one in read_events(folder) if one["event"] == event)


def has_done(folder: Path, count: int) -> bool:
    return len(count_ends(folder, "done")) >= count


def is_working(folder: Path) -> bool:
    """Whether a task has begun and is told neither done nor lost."""
    kinds = [str(one["event"]) for one in read_events(folder)]
    return kinds.count("begun") > kinds.count("done") + kinds.count("lost")


def start_map(*words: str) -> "subprocess.Popen[str]":
    """In a group of its own, so that everything of it can be killed at once."""
    return subprocess.Popen(
        [*MAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_script_over_files_and_lines(folder: Path) -> None:
    (folder / "count.py").write_text("import sys; print(len(open(sys.argv[1]).read()))\n")
    for number in range(3):
        (folder / f"{number}.txt").write_text("x" * number)
    done = run_map("count.py", "0.txt", "1.txt", "2.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 of 3 done, in ")
    assert done.stdout.endswith(f"Results: {folder / 'count-results'}\n")
    found = [(path / "stdout").read_text() for path in sorted((folder / "count-results/tasks").iterdir())]
    assert found == ["0\n", "1\n", "2\n"]
    (folder / "say.sh").write_text('echo "$1"\n')
    lines = run_map("say.sh", "--lines", "-", "--into", "said", "--json", stdin="one\n\ntwo words\n")
    assert lines.returncode == 0, lines.stderr
    summary = json.loads(lines.stdout)
    assert [(one["name"], one["state"], one["exit_code"]) for one in summary["tasks"]] == [
        ("one", "done", 0),
        ("two words", "done", 0),
    ]
    assert summary["folder"] == str(folder / "said")
    assert (folder / "said" / summary["tasks"][1]["folder"] / "stdout").read_text() == "two words\n"


def test_failures_are_told_and_tried_again_only_when_asked(folder: Path) -> None:
    (folder / "work.sh").write_text('echo "bad \033[31m$1" >&2; [ "$FREEHOLD_ATTEMPT" = 2 ]\n')
    first = run_map("work.sh", "--lines", "-", stdin="a\nb\n")
    assert first.returncode == 1
    assert "0 of 2 done, 2 failed" in first.stdout
    assert "task 1 failed: Exit code 1: bad ⟨U+001B⟩[31ma" in first.stderr, "what a computer says is made visible"
    assert "higher --retry-failed" in first.stderr
    same = run_map("work.sh", "--lines", "-", stdin="a\nb\n")
    assert same.returncode == 1
    assert count_ends(folder / "work-results", "begun") == {1: 1, 2: 1}
    again = run_map("work.sh", "--lines", "-", "--retry-failed", "1", stdin="a\nb\n")
    assert again.returncode == 0, again.stderr
    assert count_ends(folder / "work-results", "done") == {1: 1, 2: 1}


def test_after_kill_9_of_everything_each_task_ends_once(folder: Path) -> None:
    (folder / "work.sh").write_text(SLOW)
    (folder / "lines").write_text("".join(f"{number}\n" for number in range(1, 11)))
    words = ("work.sh", "--lines", "lines", "--parallel", "2")
    out = folder / "work-results"
    for wanted in (2, 5):
        process = start_map(*words)
        wait_until(lambda wanted=wanted: has_done(out, wanted) and is_working(out))  # type: ignore[misc]
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    before = set(count_ends(out, "done"))
    begun_before = count_ends(out, "begun")
    done = run_map(*words, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["done"], summary["lost"], summary["failed"]) == (10, 0, 0)
    assert count_ends(out, "done") == dict.fromkeys(range(1, 11), 1)
    begun, lost = count_ends(out, "begun"), count_ends(out, "lost")
    assert all(begun[number] == begun_before[number] for number in before), "what was done is not run again"
    assert lost, "what ran when everything was killed is told lost"
    assert all(begun[number] == 1 + lost[number] for number in range(1, 11))
    for number in range(1, 11):
        (found,) = (out / "tasks").glob(f"{number:02d}-*")
        assert (found / "stdout").read_text() == f"{number}\n"
    assert sorted(path.name for path in out.iterdir()) == ["journal.jsonl", "tasks"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(folder: Path, number: signal.Signals) -> None:
    (folder / "work.sh").write_text('case "$FREEHOLD_ATTEMPT $1" in "1 2"|"1 3") sleep 1000;; esac\n')
    (folder / "lines").write_text("1\n2\n3\n4\n")
    words = ("work.sh", "--lines", "lines", "--parallel", "2")
    process = start_map(*words)
    wait_until(lambda: len(count_ends(folder / "work-results", "begun")) == 3)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "1 of 4 done, 3 not begun or stopped" in output
    assert "You stopped it. The same command goes on from here." in errors
    assert "Traceback" not in errors
    assert count_ends(folder / "work-results", "stopped") == {2: 1, 3: 1}
    assert run_map(*words, "--retries", "0").returncode == 0, "being stopped counts as no attempt"
    assert count_ends(folder / "work-results", "done") == {1: 1, 2: 1, 3: 1, 4: 1}


def test_a_batch_is_used_by_one_process(folder: Path) -> None:
    (folder / "work.sh").write_text("sleep 1000\n")
    (folder / "lines").write_text("1\n")
    process = start_map("work.sh", "--lines", "lines")
    try:
        wait_until(lambda: count_ends(folder / "work-results", "begun"))
        other = run_map("work.sh", "--lines", "lines")
        assert other.returncode == 1
        assert "batch.folder-in-use" in other.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_limits_hold_for_each_computer(folder: Path) -> None:
    (folder / "work.py").write_text("data = bytearray(200 << 20); print(len(data))\n")
    done = run_map("work.py", "--lines", "-", "--memory", "96MiB", "--cpus", "0.5", "--json", stdin="one\n")
    assert done.returncode == 1
    (task,) = json.loads(done.stdout)["tasks"]
    assert task["state"] == "failed"
    assert "memory" in task["error"]


def test_wrong_usage_is_explained(folder: Path) -> None:
    (folder / "work.sh").write_text("true\n")
    assert run_map("work.sh").returncode == 2
    assert "at least one input" in run_map("work.sh").stderr
    assert "--budget has no meaning without --prompt" in run_map("work.sh", "work.sh", "--budget", "1").stderr
    assert "--on has no meaning with --prompt" in run_map("--prompt", "Do it", "work.sh", "--on", "docker").stderr
    assert "is not a size" in run_map("work.sh", "work.sh", "--memory", "much").stderr
    assert "at least 64MiB" in run_map("work.sh", "work.sh", "--memory", "1KiB").stderr
    assert "The prompt is empty" in run_map("--prompt", " ", "work.sh").stderr
    missing = run_map("none.sh", "work.sh")
    assert (missing.returncode, "batch.no-file" in missing.stderr) == (1, True)
    assert run_map("work.sh", "work.sh", "--parallel", "0").returncode == 2
    nowhere = run_map("work.sh", "work.sh", "--on", "nowhere")
    assert (nowhere.returncode, "computer.unknown-backend" in nowhere.stderr) == (1, True)
