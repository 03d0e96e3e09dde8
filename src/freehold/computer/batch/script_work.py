"""A script for each input, in a sealed computer that is thrown away."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.computer.batch.batch import Batch, BatchBounds, Report
from freehold.computer.batch.result_folder import write_results
from freehold.computer.batch.task import Task, TaskAttempt, TaskEnd, TaskLost, WorkLabel
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.library.computer import Computer
    from freehold.computer.library.pool import ComputerPool
    from freehold.computer.library.process import CommandResult

SCRIPT_FOLDER = f"{AGENT_HOME}/task"
INPUT_FOLDER, RESULTS_FOLDER = f"{WORKSPACE}/input", f"{WORKSPACE}/results"
OUTPUT_FILE, LOG_FILE, FILES_FOLDER = "stdout", "stderr", "results"
INTERPRETERS: Mapping[str, tuple[str, ...]] = {".py": ("python3",), ".sh": ("/bin/sh",), ".js": ("node",)}
MAX_SCRIPT = 16 << 20
MAX_INPUT = 256 << 20
MAX_RESULT_FILES, MAX_RESULTS = 1000, 64 << 20
LOST_CODES = frozenset({"link.lost", "computer.unreachable", "computer.unresponsive"})
"""What says that a computer is gone, and not that a task went wrong."""
START_RETRIES, START_PAUSE = 5, 1.0


@dataclass(frozen=True)
class Script:
    """A program of this machine that is sent into each computer. `command` runs it: its path and the input follow."""

    name: str
    content: bytes
    command: tuple[str, ...]


def read_script(path: Path) -> Script:
    """The interpreter is named by the first line (`#!`), else by the ending. Raises `batch.no-file`, `batch.bad-file`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FreeholdError("batch.no-file", f"Cannot read the script {path}: {error.strerror}") from None
    if len(content) > MAX_SCRIPT:
        raise FreeholdError("batch.too-large", f"The script {path} is larger than {MAX_SCRIPT >> 20} MiB")
    if content.startswith(b"#!"):
        words = content[2 : content.find(b"\n")].decode(errors="replace").split(None, 1)
        command = tuple(word.strip() for word in words)  # one argument at most, as the kernel reads it
    else:
        command = INTERPRETERS.get(path.suffix, ())
    if not command:
        endings = ", ".join(INTERPRETERS)
        raise FreeholdError(
            "batch.bad-file",
            f"What runs {path} is not known",
            hint=f"Begin it with a line such as #!/usr/bin/env python3, or let its name end in one of {endings}",
        )
    return Script(path.name, content, command)


def make_script_batch(
    script: Path,
    inputs: Iterable[str | Path],
    folder: Path,
    bounds: tuple[int | None, int, int],
    make_pool: Callable[[int], "ComputerPool"],
    timeout: float | None,
    report: Report | None = None,
) -> Batch:
    """`bounds` are parallel (None: one for each processor), retries and retry_failed. See `Computer.map`."""
    tasks = list_tasks(inputs)
    parallel = bounds[0] if bounds[0] is not None else len(os.sched_getaffinity(0))
    chosen = BatchBounds(parallel, *bounds[1:])
    size = min(parallel, max(len(tasks), 1))
    batch = Batch(ScriptWork(read_script(script), lambda: make_pool(size), timeout), tasks, folder, chosen)
    batch.report = report
    return batch


def list_tasks(inputs: Iterable[str | Path]) -> list[Task]:
    """A path is a file, a string is a text. Raises `batch.no-file`."""
    tasks = []
    for number, given in enumerate(inputs, 1):
        if isinstance(given, Path):
            if not given.is_file():
                raise FreeholdError("batch.no-file", f"There is no file {given}", hint="Give files as inputs")
            tasks.append(Task(number, str(given.absolute()), given.absolute()))
        else:
            if "\0" in given:
                raise FreeholdError("batch.bad-value", f"Input {number} has a zero byte, which no argument can have")
            tasks.append(Task(number, given))
    return tasks


class ScriptWork:
    """Each task has a computer of its own, which knows the script, one input and no secret, and has no network."""

    outlives = False

    def __init__(self, script: Script, make_pool: Callable[[], "ComputerPool"], timeout: float | None) -> None:
        self._script = script
        self._make_pool = make_pool
        self._timeout = timeout
        self._pool: ComputerPool | None = None
        self._has_started = False
        digest = hashlib.sha256(b"\0".join([*(word.encode() for word in script.command), script.content]))
        self.label = WorkLabel("script", script.name, digest.hexdigest())

    @property
    def waits_for(self) -> str:
        return self._pool.waits_for if self._pool is not None else ""

    @asynccontextmanager
    async def open(self, batch_id: str, spent: float) -> AsyncIterator[None]:
        async with self._make_pool() as self._pool:
            yield

    async def carry_out(self, attempt: TaskAttempt, folder: Path) -> TaskEnd:
        try:
            given = await asyncio.to_thread(_read_input, attempt.task)
        except OSError as error:
            return TaskEnd("failed", 0.0, error=f"Cannot read the input: {error.strerror or error}")
        async with self._checkout() as computer:
            try:
                return await self._run(computer, attempt, given, folder)
            except FreeholdError as error:
                if error.code in LOST_CODES:
                    raise TaskLost(error.message) from None
                return TaskEnd("failed", 0.0, error=error.message)

    @asynccontextmanager
    async def _checkout(self) -> AsyncIterator["Computer"]:
        """When others have started, one that fails is tried again: a machine of a fleet may just have been lost."""
        assert self._pool is not None  # `open` comes first
        for failures in range(START_RETRIES + 1):
            opening = self._pool.checkout()
            try:
                computer = await opening.__aenter__()
            except FreeholdError:
                if failures == START_RETRIES or not self._has_started:
                    raise
                await asyncio.sleep(START_PAUSE)
                continue
            self._has_started = True
            try:
                yield computer
            finally:
                await opening.__aexit__(None, None, None)
            return

    async def _run(self, computer: "Computer", attempt: TaskAttempt, given: bytes | None, folder: Path) -> TaskEnd:
        task = attempt.task
        script = f"{SCRIPT_FOLDER}/{self._script.name}"
        contents, argument = {script: self._script.content}, task.name
        if given is not None and task.path is not None:
            argument = f"{INPUT_FOLDER}/{task.path.name}"
            contents[argument] = given
        items = [{"do": "write", "path": path, "size": len(data), "parents": True} for path, data in contents.items()]
        results = {"do": "mkdir", "path": RESULTS_FOLDER, "parents": True, "mode": 0o777}
        for outcome in await computer.files.batch([*items, results], list(contents.values())):
            outcome.value()
        numbers = {"FREEHOLD_TASK": str(task.number), "FREEHOLD_ATTEMPT": str(attempt.number)}
        result = await computer.run(
            [*self._script.command, script, argument],
            cwd=WORKSPACE,
            env={"FREEHOLD_RESULTS": RESULTS_FOLDER, **numbers},
            timeout=self._timeout,
        )
        files, problem = await _collect_results(computer)
        await asyncio.to_thread(write_results, folder, {OUTPUT_FILE: result.stdout, LOG_FILE: result.stderr, **files})
        return _describe(result, problem)


def _read_input(task: Task) -> bytes | None:
    if task.path is None:
        return None
    if task.path.stat().st_size > MAX_INPUT:
        raise OSError(f"it is larger than {MAX_INPUT >> 20} MiB")
    return task.path.read_bytes()


async def _collect_results(computer: "Computer") -> tuple[dict[str, bytes], str | None]:
    """Files below the folder of results, and what is wrong with them. Links and devices are left where they are."""
    try:
        entries = await computer.files.walk(RESULTS_FOLDER, limit=MAX_RESULT_FILES + 1)
    except FreeholdError as error:
        if error.code in LOST_CODES:
            raise
        return {}, f"Its results cannot be read: {error.message}"
    if len(entries) > MAX_RESULT_FILES:
        return {}, f"It left more than {MAX_RESULT_FILES} results"
    names = [entry.name for entry in entries if entry.kind == "file"]
    if sum(entry.size for entry in entries if entry.kind == "file") > MAX_RESULTS:
        return {}, f"It left results of more than {MAX_RESULTS >> 20} MiB"
    if not names:
        return {}, None
    contents = await computer.files.read_many([f"{RESULTS_FOLDER}/{name}" for name in names], limit=MAX_RESULTS)
    found = {
        f"{FILES_FOLDER}/{name}": data for name, data in zip(names, contents, strict=True) if isinstance(data, bytes)
    }
    return found, None if len(found) == len(names) else "Some of its results cannot be read"


def _describe(result: "CommandResult", problem: str | None) -> TaskEnd:
    if result.limit is not None and result.limit != "output":
        what = "its time limit" if result.limit == "wall_time" else f"the limit {result.limit}"
        problem = f"It reached {what} after {result.duration:.1f} s"
    elif result.exit_code:
        last = result.stderr[-300:].decode(errors="replace").strip().rpartition("\n")[2]
        problem = f"Exit code {result.exit_code}" + (f": {last}" if last else "")
    return TaskEnd("done" if problem is None else "failed", result.duration, result.exit_code, problem)
