"""A batch: what is retried, what is not, and that it goes on from every point at which it can be killed."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.computer.batch.scripted_work import LABEL, ScriptedWork, make_batch
from tests.support.condition import until

from freehold.computer.batch.batch import BatchBounds
from freehold.computer.batch.journal import FILE, BatchJournal
from freehold.computer.batch.progress import BatchProgress, describe_progress, format_seconds
from freehold.computer.batch.task import BatchBound, JournalEvent, Task, TaskEnd, TaskLost, WorkLabel
from freehold.errors import FreeholdError


def read_events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()[1:]]


def count_events(folder: Path) -> Counter[tuple[int, str]]:
    return Counter((one["task"], one["event"]) for one in read_events(folder))


async def test_every_task_ends_once_and_has_its_folder(tmp_path: Path) -> None:
    summary = await make_batch(ScriptedWork(), tmp_path / "out", 12, BatchBounds(3))
    assert (summary.done, summary.total, summary.is_done) == (12, 12, True)
    assert [one.folder for one in summary.tasks][:2] == ["tasks/01-input_1", "tasks/02-input_2"]
    assert (tmp_path / "out/tasks/12-input_12/stdout").read_text() == "input 12 1"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [FILE, "tasks"]
    again = ScriptedWork()
    assert (await make_batch(again, tmp_path / "out", 12)).is_done
    assert again.carried_out == []


async def test_it_goes_on_from_every_byte_at_which_it_can_be_killed(tmp_path: Path) -> None:
    """Whatever part of the journal was written: each task is done once, and what was done is not begun again."""
    folder = tmp_path / "out"
    await make_batch(ScriptedWork(), folder, 3)
    whole = (folder / FILE).read_bytes()
    for size in range(len(whole) + 1):
        (folder / FILE).write_bytes(whole[:size])
        lines = whole[:size].split(b"\n")[1:-1]
        before = {one["task"] for one in map(json.loads, lines) if one["event"] == "done"}
        work = ScriptedWork()
        summary = await make_batch(work, folder, 3)
        assert summary.is_done, size
        counts = count_events(folder)
        assert all(counts[number, "done"] == 1 for number in (1, 2, 3)), size
        assert {number for number, _ in work.carried_out} == {1, 2, 3} - before, size
        # Every attempt that was begun has ended, by a line of its own.
        for number in (1, 2, 3):
            assert counts[number, "begun"] == counts[number, "done"] + counts[number, "lost"], size


async def test_what_was_lost_is_begun_again_and_what_failed_is_not(tmp_path: Path) -> None:
    async def act(task: Task, attempt: int) -> TaskEnd:
        if task.number == 1 and attempt < 3:
            raise TaskLost("the node is gone")
        if task.number == 2:
            return TaskEnd("failed", 0.0, 1, "Exit code 1")
        if task.number == 3:
            raise TaskLost("always")
        return TaskEnd("done", 0.0, 0)

    work = ScriptedWork(act)
    summary = await make_batch(work, tmp_path / "out")
    assert [one.state for one in summary.tasks] == ["done", "failed", "lost", "done"]
    assert [one.attempts for one in summary.tasks] == [3, 1, 3, 1]
    assert [one.error for one in summary.tasks] == [None, "Exit code 1", "always", None]
    assert (summary.tasks[1].folder, summary.tasks[2].folder) == ("tasks/2-input_2", None)
    # The owner asks for more, of exactly these two.
    again = ScriptedWork()
    more = await make_batch(again, tmp_path / "out", bounds=BatchBounds(1, retries=3, retry_failed=1))
    assert more.is_done
    assert again.carried_out == [(2, 2), (3, 4)]


async def test_stopping_ends_what_runs_and_counts_nothing_against_it(tmp_path: Path) -> None:
    async def act(task: Task, _attempt: int) -> TaskEnd:
        if task.number > 1:
            await asyncio.Event().wait()
        return TaskEnd("done", 0.0, 0)

    work, bounds = ScriptedWork(act), BatchBounds(2, retries=0)
    batch = make_batch(work, tmp_path / "out", bounds=bounds)
    running = asyncio.ensure_future(batch.run())
    await until(lambda: len(work.carried_out) == 3)
    assert batch.progress.running == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    summary = batch.summarize("You stopped it")
    assert (summary.done, summary.waiting, summary.stopped_by) == (1, 3, "You stopped it")
    assert count_events(tmp_path / "out")[2, "stopped"] == 1
    again = ScriptedWork()
    assert (await make_batch(again, tmp_path / "out", bounds=bounds)).is_done
    assert sorted(again.carried_out) == [(2, 2), (3, 2), (4, 1)]


async def test_a_bound_lets_the_others_finish_and_begins_nothing_more(tmp_path: Path) -> None:
    async def act(task: Task, _attempt: int) -> TaskEnd:
        if task.number == 2:
            raise BatchBound("Nothing is left of the budget")
        return TaskEnd("done", 0.0, 0, cost=0.25)

    summary = await make_batch(ScriptedWork(act), tmp_path / "out", 6, BatchBounds(1))
    assert (summary.done, summary.waiting, summary.stopped_by) == (1, 5, "Nothing is left of the budget")
    assert summary.cost == 0.25
    rest = await make_batch(ScriptedWork(), tmp_path / "out", 6, BatchBounds(1))
    assert (rest.is_done, rest.cost) == (True, 0.25)


async def test_an_error_of_the_work_itself_ends_the_batch_with_that_error(tmp_path: Path) -> None:
    async def act(task: Task, _attempt: int) -> TaskEnd:
        if task.number == 2:
            raise FreeholdError("computer.no-isolation", "no walls here")
        return TaskEnd("done", 0.0, 0)

    with pytest.raises(FreeholdError, match="no walls here"):
        await make_batch(ScriptedWork(act), tmp_path / "out", bounds=BatchBounds(1))
    assert count_events(tmp_path / "out")[2, "stopped"] == 1


async def test_work_that_outlives_a_kill_is_found_again_by_the_same_attempt(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    async def act(task: Task, _attempt: int) -> TaskEnd:
        if task.number == 2:
            raise FreeholdError("client.unreachable", "nobody answers")
        return TaskEnd("done", 0.0, 0)

    with pytest.raises(FreeholdError, match="nobody answers"):
        await make_batch(ScriptedWork(act, outlives=True), folder, bounds=BatchBounds(1))
    again = ScriptedWork(outlives=True)
    assert (await make_batch(again, folder, bounds=BatchBounds(1))).is_done
    assert again.carried_out == [(2, 1), (3, 1), (4, 1)]
    assert count_events(folder)[2, "begun"] == 1


async def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_draft: Path, _final: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("freehold.computer.batch.batch.replace_folder", refuse)
    with pytest.raises(FreeholdError) as caught:
        await make_batch(ScriptedWork(), tmp_path / "out", bounds=BatchBounds(1))
    assert caught.value.code == "batch.disk-error"
    assert "No space left" in caught.value.message


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        (lambda folder: (folder / "mine.txt").write_text("x"), "batch.not-empty"),
        (lambda folder: (folder / FILE).write_text("no journal\n"), "batch.unreadable"),
        (lambda folder: (folder / FILE).write_text('{"format":1}\n'), "batch.unreadable"),
        (lambda folder: (folder / FILE).symlink_to("/etc/hostname"), "batch.disk-error"),
    ],
    ids=["foreign", "nonsense", "incomplete", "link"],
)
async def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, prepare: Any, code: str) -> None:
    prepare(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(FreeholdError) as caught:
        await make_batch(ScriptedWork(), tmp_path)
    assert caught.value.code == code
    assert sorted(path.name for path in tmp_path.iterdir()) == before


async def test_a_journal_with_a_task_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    await make_batch(ScriptedWork(), tmp_path)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"event":"begun","task":99,"attempt":1,"at":0}\n')
    with pytest.raises(FreeholdError) as caught:
        await make_batch(ScriptedWork(), tmp_path)
    assert caught.value.code == "batch.unreadable"


async def test_another_script_or_other_inputs_are_another_batch(tmp_path: Path) -> None:
    await make_batch(ScriptedWork(), tmp_path)
    for work, count in ((ScriptedWork(label=WorkLabel("script", "scripted", "1" * 64)), 4), (ScriptedWork(), 5)):
        with pytest.raises(FreeholdError) as caught:
            await make_batch(work, tmp_path, count)
        assert caught.value.code == "batch.changed"
        assert work.carried_out == []


def test_two_processes_never_work_on_one_batch(tmp_path: Path) -> None:
    with BatchJournal.open(tmp_path, LABEL, ("a",)):
        with pytest.raises(FreeholdError) as caught:
            BatchJournal.open(tmp_path, LABEL, ("a",))
        assert caught.value.code == "batch.folder-in-use"
    with BatchJournal.open(tmp_path, LABEL, ("a",)) as again:
        assert again.events == []


async def test_a_report_has_counts_rate_and_the_time_that_is_left(tmp_path: Path) -> None:
    told: list[tuple[JournalEvent, BatchProgress]] = []
    batch = make_batch(ScriptedWork(), tmp_path, 5, BatchBounds(1))
    batch.report = lambda event, progress: told.append((event, progress))
    await batch
    assert [progress.done for _, progress in told] == [1, 2, 3, 4, 5]
    assert [progress.waiting + progress.running for _, progress in told] == [4, 3, 2, 1, 0]
    last = told[-1][1]
    assert last.rate is not None
    assert last.rate > 0
    assert last.seconds_left == 0


def test_progress_in_words() -> None:
    progress = BatchProgress(200, 120, 2, 1, 4, 73, 60.0, 2.5, 30.8, 0.1234)
    assert describe_progress(progress, 5) == (
        "123 of 200, 2 failed, 1 lost, 4 running, 2.5 a second, 31 s left, cost 0.1234 of 5"
    )
    begin = BatchProgress(3, 0, 0, 0, 1, 2, 0.0, None, None, None)
    assert describe_progress(begin) == "0 of 3, 1 running"
    waiting = replace(begin, waits_for="No node is connected")
    assert describe_progress(waiting) == "0 of 3, 1 running, waits: No node is connected"
    assert [format_seconds(one) for one in (1.25, 42, 600, 36_000)] == ["1.2 s", "42 s", "10 min", "10.0 h"]


@pytest.mark.parametrize("bounds", [(0, 2, 0), (1025, 2, 0), (1, -1, 0), (1, 0, 101)])
def test_bounds_are_bounded(bounds: tuple[int, int, int]) -> None:
    with pytest.raises(FreeholdError) as caught:
        BatchBounds(*bounds)
    assert caught.value.code == "batch.range"
