"""A zygote that is killed while its isolates work: they end with an error, and nothing else does. One without work ends."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.computer.isolates.wasm_modules import COUNTER
from tests.support.condition import until

from freehold.computer import CodeLanguage, CodeResult, Computer, Mount, RunningProcess
from freehold.computer.isolates.language import LanguageName
from freehold.computer.library.prepared_packages import WASMTIME
from freehold.errors import FreeholdError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@dataclass(frozen=True)
class Language:
    endless: str
    endless_call: str | None
    """The function of its module, as for `one_call`."""
    prepare: str
    """Executed once in a context."""
    value: str
    """Evaluates to 42 in it."""
    zygote: str
    """A word of the command line of its zygote."""
    one_call: str | None = None
    """What to call when `prepare` is a module that runs alone."""


LANGUAGES: dict[LanguageName, Language] = {
    "python": Language("while True: pass", None, "x = 42", "x", "python"),
    "javascript": Language("for (;;);", None, "var x = 42", "x", "--single-threaded"),
    "typescript": Language("for (;;);", None, "var x: number = 42", "x", "--single-threaded"),
    "wasm": Language(COUNTER, "loop()", COUNTER, "add(40, 2)", "wasm", "add(40, 2)"),
}


def _is_zygote(process: RunningProcess, language: Language) -> bool:
    return process.parent == 1 and language.zygote in process.command


async def _find_zygotes(computer: Computer, language: Language) -> list[int]:
    return [one.pid for one in await computer.processes() if _is_zygote(one, language)]


async def _find_busy(computer: Computer, zygote: int) -> set[int]:
    """Its isolates that have computed for a while."""
    return {one.pid for one in await computer.processes() if one.parent == zygote and one.cpu > 0.2}


@pytest.mark.parametrize("name", LANGUAGES)
async def test_a_zygote_that_is_killed_in_the_middle_of_work_ends_its_own_isolates_only(
    computer: Computer, name: LanguageName
) -> None:
    language, code = LANGUAGES[name], CodeLanguage(computer._connection, name)
    other = await (computer.python if name != "python" else computer.javascript).contexts.create()
    await other.execute("y = 7")
    context = await code.contexts.create()
    await context.execute(language.prepare)
    (zygote,) = await _find_zygotes(computer, language)
    busy_before = await _find_busy(computer, zygote)
    running: list[asyncio.Future[CodeResult]] = [
        asyncio.ensure_future(code.execute(language.endless, call=language.endless_call)) for _ in range(3)
    ]

    async def all_are_at_work() -> bool:
        return len(await _find_busy(computer, zygote) - busy_before) == len(running)

    await until(all_are_at_work)
    await computer.run(["kill", "-9", str(zygote)])
    for one in running:
        with pytest.raises(FreeholdError) as failed:
            await one
        assert failed.value.code == "computer.isolate-failed"
    with pytest.raises(FreeholdError) as ended:
        await context.evaluate(language.value)
    assert ended.value.code == "computer.context-ended"
    await context.reset()
    await context.execute(language.prepare)
    assert await context.evaluate(language.value) == 42
    assert await other.evaluate("y") == 7
    await context.delete()
    await other.delete()


@pytest.mark.parametrize("name", ["javascript", "wasm"])
async def test_a_zygote_without_work_ends_and_comes_back(name: LanguageName) -> None:
    """A context that is kept is work. tests/computer/isolates/test_python.py has the same for Python."""
    language = LANGUAGES[name]
    async with Computer.start(mounts=[Mount(node_folder(), NODE_PLACE)]) as computer:
        impatient = CodeLanguage(computer._connection, name, idle_after=0.0)
        context = await impatient.contexts.create()
        await context.execute(language.prepare)
        (zygote,) = await _find_zygotes(computer, language)
        assert (await impatient.execute(language.prepare, call=language.one_call)).ok
        assert await context.evaluate(language.value) == 42
        assert await _find_zygotes(computer, language) == [zygote]
        await context.delete()

        async def has_ended() -> bool:
            return not [one for one in await computer.processes() if zygote in (one.pid, one.parent)]

        await until(has_ended)
        assert (await impatient.execute(language.prepare, call=language.one_call)).ok


NODE_THAT_FAILS = r"""#!/bin/sh
printf 'node:internal/modules:1\n\nError: the addon cannot be loaded\n    at load (x.js:1)\n\nNode.js v24.0.0\n' >&2
exit 1
"""


async def test_a_zygote_that_cannot_start_says_its_error_and_not_the_version_of_its_program(tmp_path: Path) -> None:
    program = tmp_path / "node/bin/node"
    program.parent.mkdir(parents=True)
    program.write_text(NODE_THAT_FAILS)
    program.chmod(0o755)
    async with Computer.start(mounts=[Mount(tmp_path / "node", NODE_PLACE)]) as computer:
        for _ in range(20):  # it ends before, while or after it is told what to do
            with pytest.raises(FreeholdError) as failed:
                await computer.javascript.execute("1")
            assert failed.value.message == (
                "The javascript interpreter for isolates ended: Error: the addon cannot be loaded"
            )
            assert failed.value.code == "computer.isolate-failed"


async def test_a_computer_without_wasmtime_says_that_it_is_missing(tmp_path: Path) -> None:
    """The owner has put something else where it would be. The other languages go on."""
    async with Computer.start(mounts=[Mount(tmp_path, WASMTIME)]) as computer:
        with pytest.raises(FreeholdError, match="wasmtime, which runs WebAssembly, is not installed") as failed:
            await computer.wasm.execute(COUNTER, call="add(40, 2)")
        assert failed.value.code == "computer.no-wasmtime"
        assert "pip install wasmtime" in failed.value.hint
        assert await computer.python.evaluate("6 * 7") == 42
