"""`run_code`: code of an agent runs in isolates of its session."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from freehold.agents.tools.code_runner import MAX_ANSWER, MAX_PICTURE, CodeRunner
from freehold.computer import Computer
from freehold.guest.isolates.service import MAX_CONTEXTS

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        await started.files.write("notes.txt", b"four")
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def runner(computer: Computer) -> CodeRunner:
    return CodeRunner(lambda _session: computer)


async def run(runner: CodeRunner, session: str, code: str) -> str:
    return (await runner.run(session, "python", code)).text


async def test_variables_stay_within_a_session(runner: CodeRunner) -> None:
    assert await run(runner, "one", "x = 40") == "Done. There is no output."
    assert await run(runner, "one", "print('out')\nx + 2") == "out\n42"
    assert "NameError" in await run(runner, "two", "x")


async def test_it_reads_the_workspace_and_writes_nothing(runner: CodeRunner) -> None:
    assert await run(runner, "one", "open('/workspace/notes.txt').read()") == '"four"'
    for act in ("open('/workspace/new', 'w')", "import os; os.listdir('/home/agent')", "import os; os.fork()"):
        assert "PermissionError" in await run(runner, "one", act)
    connect = "import socket; socket.create_connection(('127.0.0.1', 3130))"
    assert "PermissionError" in await run(runner, "one", connect)


async def test_code_runs_in_the_computer_of_its_session_and_nowhere_else(computer: Computer) -> None:
    """An agent of a run reads the copy in the computer of the run. When that has ended, the session works in `main`."""
    read = "open('/workspace/notes.txt').read()"
    own: dict[str, Computer] = {}
    runner = CodeRunner(lambda session: own.get(session, computer))
    async with Computer.start() as started:
        await started.files.write("notes.txt", b"copy")
        own["run"] = started
        assert await run(runner, "run", read) == '"copy"'
        assert await run(runner, "other", read) == '"four"'
        assert [one.label for one in await started.python.contexts.list()] == ["session run"]
        del own["run"]
    assert await run(runner, "run", read) == '"four"'


async def test_a_session_whose_isolate_died_is_told_and_goes_on(runner: CodeRunner) -> None:
    await run(runner, "three", "x = 1")
    assert "exit code 9" in await run(runner, "three", "import os; os._exit(9)")
    assert await run(runner, "three", "5") == "The variables of earlier calls are gone.\n5"


async def test_a_long_answer_is_shortened(runner: CodeRunner) -> None:
    answer = await run(runner, "one", "print('a' * 100_000)")
    assert len(answer) < MAX_ANSWER + 100
    assert "characters are left out" in answer


async def test_the_kill_switch_ends_it(runner: CodeRunner, computer: Computer) -> None:
    await run(runner, "four", "x = 1")
    await computer.end_sessions()
    assert (await run(runner, "four", "6")).endswith("6")


async def test_figures_come_as_pictures_and_too_large_ones_are_only_named(runner: CodeRunner) -> None:
    """An object that draws itself as PNG, as figures do."""
    figure = (
        "class Figure:\n  def __init__(self, size): self.size = size\n  def _repr_png_(self): return b'p' * self.size\n"
    )
    answer = await runner.run("one", "python", f"{figure}display(Figure({MAX_PICTURE + 1}))\nFigure(9)")
    assert answer.text == f"[image/png, {MAX_PICTURE + 1} bytes]\n[image/png, 9 bytes]"
    text, picture = answer.as_json()
    assert text["type"] == "text"
    assert picture == {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"p" * 9).decode()}


async def test_when_there_are_too_many_contexts_the_oldest_of_another_session_goes(
    runner: CodeRunner, computer: Computer
) -> None:
    await run(runner, "old", "x = 1")
    taken = len(await computer.python.contexts.list())
    others = [await computer.python.contexts.create() for _ in range(MAX_CONTEXTS - taken)]
    assert await run(runner, "new", "6 * 7") == "42"
    assert "NameError" in await run(runner, "old", "x")
    for context in others:
        await context.delete()


async def test_two_calls_at_once_share_one_new_context(runner: CodeRunner, computer: Computer) -> None:
    """The second is refused while the first runs, and no context is left behind."""
    before = len(await computer.python.contexts.list())
    calls = (run(runner, "twice", "x = 1"), run(runner, "twice", "y = 1"))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(answer == "Done. There is no output." or "is busy" in str(answer) for answer in answers)
    assert len(await computer.python.contexts.list()) == before + 1
