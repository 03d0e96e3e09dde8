"""Scripts over inputs, in real computers: what comes back, what is lost, and what never leaves."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.condition import until

from freehold.computer import Computer, ComputerPool, Limits
from freehold.computer.batch.batch import BatchSummary
from freehold.computer.batch.result_folder import name_folder, write_results
from freehold.computer.batch.script_work import make_script_batch, read_script
from freehold.computer.batch.task import Task
from freehold.computer.library.file_entry import FileEntry
from freehold.errors import FreeholdError

WriteScript = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteScript:
    def write(text: str, name: str = "work.sh") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


async def map_texts(script: Path, *texts: str, **more: Any) -> BatchSummary:
    return await Computer.map(script, texts, into=script.parent / "out", parallel=2, **more)


async def test_files_go_in_and_output_logs_and_results_come_back(tmp_path: Path, write: WriteScript) -> None:
    script = write(
        "import os, pathlib, sys\n"
        "text = pathlib.Path(sys.argv[1]).read_text()\n"
        "print(text.upper(), end='')\n"
        "print('a word on the side', file=sys.stderr)\n"
        "place = pathlib.Path(os.environ['FREEHOLD_RESULTS']) / 'deep'\n"
        "place.mkdir()\n"
        "(place / 'length').write_text(str(len(text)))\n",
        "work.py",
    )
    names = ["a.txt", "b with space.txt"]
    for name in names:
        (tmp_path / name).write_text(f"text of {name}")
    out = tmp_path / "out"
    summary = await Computer.map(script, [tmp_path / name for name in names], into=out, parallel=2)
    assert summary.is_done, summary.tasks
    for task, name in zip(summary.tasks, names, strict=True):
        assert task.folder is not None
        folder = out / task.folder
        assert (folder / "stdout").read_text() == f"TEXT OF {name.upper()}"
        assert (folder / "stderr").read_text() == "a word on the side\n"
        assert (folder / "results/deep/length").read_text() == str(len(f"text of {name}"))
        assert (folder / "stdout").stat().st_mode & 0o777 == 0o600
    assert summary.tasks[1].folder == "tasks/2-b_with_space.txt"


async def test_each_task_is_alone(write: WriteScript) -> None:
    """No task sees what another one left, the files of this machine, its network or its environment."""
    script = write(
        "#!/usr/bin/env python3\n"
        "import os, pathlib, socket, sys\n"
        "left = pathlib.Path.home() / 'left'\n"
        "print(sys.argv[1], left.exists(), os.environ.get('SECRET_OF_THE_OWNER'), os.path.exists(sys.argv[1]))\n"
        "left.write_text('mine')\n"
        "try:\n"
        "    socket.create_connection(('192.0.2.1', 80), 3)\n"
        "except OSError as error:\n"
        "    print('no network')\n",
        "work",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_OF_THE_OWNER", "hunter2")
        summary = await map_texts(script, *[str(script)] * 3)
    assert summary.is_done
    for task in summary.tasks:
        assert task.folder is not None
        said = (script.parent / "out" / task.folder / "stdout").read_text()
        assert said == f"{script} False None False\nno network\n"


async def test_a_failure_a_time_limit_and_a_missing_program_are_failures(tmp_path: Path, write: WriteScript) -> None:
    script = write('case "$1" in bad) echo went wrong >&2; exit 3;; slow) sleep 1000;; esac\n')
    summary = await map_texts(script, "bad", "good")
    assert [one.state for one in summary.tasks] == ["failed", "done"]
    assert summary.tasks[0].error == "Exit code 3: went wrong"
    assert summary.tasks[0].exit_code == 3
    assert (tmp_path / "out/tasks/1-bad/stderr").read_text() == "went wrong\n"
    assert [one.attempts for one in summary.tasks] == [1, 1]
    late = await Computer.map(script, ["slow"], into=tmp_path / "late", timeout=0.5)
    assert [(one.state, one.attempts) for one in late.tasks] == [("failed", 1)]
    assert "time limit" in (late.tasks[0].error or "")
    nowhere = await Computer.map(write("#!/no/such/program\n", "odd"), ["x"], into=tmp_path / "other")
    assert nowhere.tasks[0].state == "failed"
    assert "/no/such/program" in (nowhere.tasks[0].error or "")


async def test_an_input_that_is_gone_fails_alone(tmp_path: Path, write: WriteScript) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    batch = Computer.map(write('cat "$1"\n'), [tmp_path / "a", tmp_path / "b"], into=tmp_path / "out", parallel=1)
    (tmp_path / "a").unlink()
    summary = await batch
    assert [one.state for one in summary.tasks] == ["failed", "done"]
    assert "No such file" in (summary.tasks[0].error or "")


async def test_a_computer_that_dies_loses_its_task_which_is_begun_again(tmp_path: Path, write: WriteScript) -> None:
    script = write('if [ "$FREEHOLD_ATTEMPT" = 1 ]; then sleep 1000; fi; echo "$1 again"\n')
    started: list[Computer] = []

    async def start() -> Computer:
        computer = await Computer.start()
        started.append(computer)
        return computer

    batch = make_script_batch(script, ["x"], tmp_path / "out", (1, 1, 0), lambda size: ComputerPool(start, size), None)
    running = asyncio.ensure_future(batch.run())

    async def find_busy() -> Computer | None:
        for computer in started:
            if computer.is_connected and any("sleep" in one.name for one in await computer.processes()):
                return computer
        return None

    busy = await until(find_busy)
    assert busy is not None
    assert busy.machine is not None
    await busy.machine.stop(0)
    summary = await running
    assert (summary.tasks[0].state, summary.tasks[0].attempts) == ("done", 2)
    assert (tmp_path / "out/tasks/1-x/stdout").read_text() == "x again\n"


async def test_links_and_devices_among_the_results_stay_inside(tmp_path: Path, write: WriteScript) -> None:
    script = write(
        'cd "$FREEHOLD_RESULTS"; ln -s /etc/passwd link; ln -s / all; mkfifo pipe; mkdir empty; echo fine > file\n'
    )
    summary = await map_texts(script, "x")
    assert summary.is_done
    results = tmp_path / "out/tasks/1-x/results"
    assert sorted(path.name for path in results.iterdir()) == ["file"]


async def test_too_many_or_too_large_results_are_a_failure_that_says_so(write: WriteScript) -> None:
    script = write(
        'cd "$FREEHOLD_RESULTS"\n'
        'if [ "$1" = many ]; then seq 1100 | xargs touch; else head -c 70000000 /dev/zero > large; fi\n'
    )
    summary = await map_texts(script, "many", "large")
    assert [one.state for one in summary.tasks] == ["failed", "failed"]
    assert [one.error for one in summary.tasks] == [
        "It left more than 1000 results",
        "It left results of more than 64 MiB",
    ]


class HostileFiles:
    """A guest that names results as an attacker would."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def batch(self, items: list[Any], _contents: list[bytes]) -> list[Any]:
        return [SimpleNamespace(value=dict) for _ in items]

    async def walk(self, _path: str, *, limit: int) -> list[FileEntry]:
        return [FileEntry(name, "file", 1, 0, 0o644, None) for name in ("taken", self._name)]

    async def read_many(self, paths: list[str], *, limit: int) -> list[bytes]:
        return [b"planted" for _ in paths]


@pytest.mark.parametrize(
    "name",
    ["../planted", "../../../../planted", "/tmp/planted", "a/../../planted", "", ".", "a//b", "nul\0", "taken/b", "x" * 300],
    ids=["up", "far-up", "absolute", "through", "empty", "dot", "double", "nul", "below-a-file", "long"],
)  # fmt: skip
async def test_a_hostile_computer_writes_nowhere_else(tmp_path: Path, write: WriteScript, name: str) -> None:
    async def run(*_: object, **__: object) -> Any:
        return SimpleNamespace(stdout=b"", stderr=b"", exit_code=0, duration=0.0, limit=None)

    async def close() -> None:
        return

    async def start() -> Any:
        return SimpleNamespace(files=HostileFiles(name), run=run, close=close, state="healthy", is_connected=True)

    folder = tmp_path / "below" / "out"
    script = write("true\n")
    before = set(tmp_path.rglob("*"))
    batch = make_script_batch(script, ["x"], folder, (1, 0, 0), lambda size: ComputerPool(start, size), None)
    summary = await batch
    assert summary.tasks[0].state == "failed"
    assert "which is refused" in (summary.tasks[0].error or "")
    made = {path for path in set(tmp_path.rglob("*")) - before if path.is_file()}
    assert all(path.is_relative_to(folder) for path in made)
    assert {path.name for path in made} == {"journal.jsonl", "stdout", "stderr", "taken"}
    assert not Path("/tmp/planted").exists()


def test_results_never_replace_a_file_or_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "mine")
    with pytest.raises(FreeholdError) as caught:
        write_results(tmp_path / "out", {"a": b"planted"})
    assert caught.value.code == "batch.bad-name"
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\nb", "ü" * 300, "/", "..", "-rf"])
def test_the_folder_of_a_task_has_a_safe_name(name: str) -> None:
    found = name_folder(Task(7, name), 120)
    assert found.startswith("007-")
    assert "/" not in found
    assert found.isascii()
    assert found.isprintable()
    assert len(found) <= 70


@pytest.mark.parametrize(("name", "text", "command"), [
    ("a.py", "print(1)", ("python3",)),
    ("a.sh", "true", ("/bin/sh",)),
    ("a", "#! /usr/bin/env -S node  --strict \n1", ("/usr/bin/env", "-S node  --strict")),
])  # fmt: skip
def test_what_runs_a_script(write: WriteScript, name: str, text: str, command: tuple[str, ...]) -> None:
    assert read_script(write(text, name)).command == command


@pytest.mark.parametrize(("name", "text"), [("a.exe", "MZ"), ("a", ""), ("b", "#!\n")])
def test_a_script_that_nothing_runs_is_refused_before_anything_begins(write: WriteScript, name: str, text: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        read_script(write(text, name))
    assert caught.value.code == "batch.bad-file"


def test_missing_files_and_impossible_texts_are_refused_before_anything_begins(
    tmp_path: Path, write: WriteScript
) -> None:
    script = write("true\n")
    cases: list[tuple[Path, list[str | Path], str]] = [
        (tmp_path / "none.sh", ["x"], "batch.no-file"),
        (script, [tmp_path / "none"], "batch.no-file"),
        (script, [tmp_path], "batch.no-file"),
        (script, ["a\0b"], "batch.bad-value"),
        (script, [], "batch.empty"),
    ]
    for chosen, inputs, code in cases:
        with pytest.raises(FreeholdError) as caught:
            Computer.map(chosen, inputs, into=tmp_path / "out")
        assert caught.value.code == code
    assert not (tmp_path / "out").exists()


async def test_an_unknown_backend_ends_the_batch_with_its_own_error(tmp_path: Path, write: WriteScript) -> None:
    with pytest.raises(FreeholdError) as caught:
        await Computer.map(write("true\n"), ["x"], into=tmp_path / "out", on="nowhere")
    assert caught.value.code == "computer.unknown-backend"


async def test_limits_are_those_of_each_computer(write: WriteScript) -> None:
    script = write("head -c 5000 /dev/zero | tr '\\0' x\n")
    summary = await map_texts(script, "x", limits=Limits(output=1000))
    assert summary.is_done
    assert (script.parent / "out/tasks/1-x/stdout").stat().st_size == 1000
