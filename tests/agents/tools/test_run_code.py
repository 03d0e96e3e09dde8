"""`run_code`: code of an agent runs in isolates of its session."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from freehold.agents.tools.code_runner import MAX_ANSWER, CodeRunner
from freehold.computer import Computer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        await started.files.write("notes.txt", b"four")
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def runner(computer: Computer) -> CodeRunner:
    return CodeRunner(lambda: computer)


async def test_variables_stay_within_a_session(runner: CodeRunner) -> None:
    assert await runner.run("one", "python", "x = 40") == "Done. There is no output."
    assert await runner.run("one", "python", "print('out')\nx + 2") == "out\n42"
    assert "NameError" in await runner.run("two", "python", "x")


async def test_it_reads_the_workspace_and_writes_nothing(runner: CodeRunner) -> None:
    assert await runner.run("one", "python", "open('/workspace/notes.txt').read()") == '"four"'
    for act in ("open('/workspace/new', 'w')", "import os; os.listdir('/home/agent')", "import os; os.fork()"):
        assert "PermissionError" in await runner.run("one", "python", act)
    connect = "import socket; socket.create_connection(('127.0.0.1', 3130))"
    assert "PermissionError" in await runner.run("one", "python", connect)


async def test_a_session_whose_isolate_died_is_told_and_goes_on(runner: CodeRunner) -> None:
    await runner.run("three", "python", "x = 1")
    assert "exit code 9" in await runner.run("three", "python", "import os; os._exit(9)")
    assert await runner.run("three", "python", "5") == "The variables of earlier calls are gone.\n5"


async def test_a_long_answer_is_shortened(runner: CodeRunner) -> None:
    answer = await runner.run("one", "python", "print('a' * 100_000)")
    assert len(answer) < MAX_ANSWER + 100
    assert "characters are left out" in answer


async def test_the_kill_switch_ends_it(runner: CodeRunner, computer: Computer) -> None:
    await runner.run("four", "python", "x = 1")
    await computer.end_sessions()
    assert (await runner.run("four", "python", "6")).endswith("6")
