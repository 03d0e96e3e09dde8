"""`run_code`: code of an agent runs in isolates of its session."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.computer.isolates.wasm_modules import COUNTER

from freehold.agents.tools.code_runner import MAX_ANSWER, MAX_PICTURE, CodeCall, CodeLanguageName, CodeRunner
from freehold.computer import Computer, Mount
from freehold.errors import FreeholdError
from freehold.guest.isolates.service import MAX_CONTEXTS, MAX_SESSION_ZYGOTES

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

PACKAGES = tuple(f"part{number}" for number in range(MAX_SESSION_ZYGOTES + 1))


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> list[Mount]:
    packages = tmp_path_factory.mktemp("packages")
    packages.chmod(0o755)
    for name in PACKAGES:
        (packages / name).mkdir()
        (packages / name / f"{name}.py").write_text(f"NAME = '{name}'")
    (packages / "shout/node_modules/shout").mkdir(parents=True)
    (packages / "shout/node_modules/shout/index.js").write_text("module.exports = (text) => text.toUpperCase()")
    return [Mount(node_folder(), NODE_PLACE), *(Mount(one, f"/opt/packages/{one.name}") for one in packages.iterdir())]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(mounts: list[Mount]) -> AsyncIterator[Computer]:
    async with Computer.start(mounts=mounts) as started:
        await started.files.write("notes.txt", b"four")
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def runner(computer: Computer) -> CodeRunner:
    return CodeRunner(lambda _session: computer)


async def run(runner: CodeRunner, session: str, code: str, packages: frozenset[str] | None = None) -> str:
    return (await runner.run(session, CodeCall("python", code, packages=packages))).text


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
    answer = await runner.run("one", CodeCall("python", f"{figure}display(Figure({MAX_PICTURE + 1}))\nFigure(9)"))
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


@pytest.mark.parametrize(
    ("language", "code", "call", "said"),
    [
        ("javascript", "[6 * 7]", None, "[42]"),
        ("typescript", "const x: number = 42; x", None, "42"),
        ("wasm", COUNTER, "add(40, 2)", "42"),
        ("wasm", base64.b64encode(b"\0asm\1\0\0\0").decode(), "missing()", "missing"),
    ],
)
async def test_every_language_runs(
    runner: CodeRunner, language: CodeLanguageName, code: str, call: str | None, said: str
) -> None:
    assert said in (await runner.run("languages", CodeCall(language, code, call))).text


async def test_a_module_keeps_its_memory_for_the_next_call(runner: CodeRunner) -> None:
    await runner.run("modules", CodeCall("wasm", COUNTER))
    counted = [(await runner.run("modules", CodeCall("wasm", "next()"))).text for _ in range(2)]
    assert counted == ["1", "2"]
    with pytest.raises(FreeholdError, match="not valid base64"):
        await runner.run("modules", CodeCall("wasm", "AGFzbQ!"))


async def test_prepared_packages_are_there_when_they_are_named_and_stay_for_later_calls(runner: CodeRunner) -> None:
    assert "ModuleNotFoundError" in await run(runner, "packages", "x = 1; import part0")
    named = await run(runner, "packages", "import part0; part0.NAME", frozenset({"part0"}))
    assert named == 'The variables of earlier calls are gone.\n"part0"'
    assert await run(runner, "packages", "y = 2; part0.NAME") == '"part0"'
    assert await run(runner, "packages", "y", frozenset({"part0"})) == "2"
    assert "NameError" in await run(runner, "packages", "y", frozenset())
    shout = CodeCall("javascript", "require('shout')('quiet')", packages=frozenset({"shout"}))
    assert (await runner.run("packages", shout)).text == '"QUIET"'


async def test_a_package_that_is_not_prepared_is_refused_and_the_variables_stay(runner: CodeRunner) -> None:
    await run(runner, "absent", "x = 42")
    with pytest.raises(FreeholdError, match="is not prepared in this computer"):
        await run(runner, "absent", "1", frozenset({"no_such_package"}))
    assert await run(runner, "absent", "x") == "42"


async def test_sessions_with_many_packages_leave_the_owner_interpreters(mounts: list[Mount]) -> None:
    """Each set of packages needs an interpreter of its own, and each is in use by the context of a session."""
    *some, last = PACKAGES
    async with Computer.start(mounts=mounts) as computer:
        for name in some:
            await computer.python.contexts.create(packages=(name,), apart=f"session-{name}")
        with pytest.raises(FreeholdError, match=f"{MAX_SESSION_ZYGOTES} interpreters") as refused:
            await computer.python.contexts.create(packages=(last,), apart="session-of-too-many")
        assert refused.value.code == "computer.busy"
        for language in (computer.python, computer.javascript):
            assert await language.evaluate("6 * 7") == 42
        owned = await computer.python.contexts.create(packages=(last,))
        assert await owned.evaluate(f"import {last}; {last}.NAME") == last
