"""WebAssembly in isolates: commands of WASI, functions that are called, contexts, and modules that stay compiled."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.computer.isolates import wasm_modules
from tests.computer.isolates.wasm_modules import COUNTER, HELLO, file_module
from tests.support.condition import DEADLINE

from freehold.computer import CodeContext, CodeResult, Computer, Grants, IsolateLimits
from freehold.computer.isolates.execution import ExecutionReceiver
from freehold.computer.isolates.limits import describe_isolate
from freehold.computer.library.link import Link
from freehold.errors import FreeholdError
from freehold.guest.isolates.module_store import MAX_MODULES

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SHORT = 0.4
NOT_PERMITTED, NO_SUCH_FILE, NO_DESCRIPTOR = 63, 44, 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def witness(computer: Computer) -> AsyncIterator[CodeContext]:
    context = await computer.wasm.contexts.create()
    await context.execute(COUNTER)
    yield context


async def check_ended(result: CodeResult, witness: CodeContext) -> None:
    assert not result.ok, result
    assert await witness.evaluate("add(40, 2)") == 42


async def test_a_command_of_wasi_has_output_and_an_exit_code(computer: Computer) -> None:
    result = await computer.wasm.execute(HELLO)
    assert (result.stdout, result.stderr, result.exit_code, result.error) == (b"out\n", b"err\n", 3, None)


async def test_functions_are_called_with_numbers_and_return_numbers(computer: Computer) -> None:
    assert await computer.wasm.evaluate(COUNTER, call="add(40, 2)") == 42
    assert await computer.wasm.evaluate(COUNTER, call="pair()") == [9007199254740993, 0.5]
    assert await computer.wasm.evaluate(COUNTER, call="nan()") == "nan"


async def test_arguments_are_passed_and_no_variable_of_the_computer_is(computer: Computer) -> None:
    result = await computer.wasm.execute(wasm_modules.ARGUMENTS, arguments=("a", "b"))
    assert result.exit_code == 3
    python = await computer.python.evaluate("import sys; sys.argv[1:]", arguments=("a", "b"))
    script = await computer.javascript.evaluate("process.argv.slice(2)", arguments=("a", "b"))
    assert python == script == ["a", "b"]


@pytest.mark.parametrize(
    ("code", "call", "name"),
    [
        ("(module (func", None, "CompileError"),
        (b"\0asm\x0d\0\x01\0", None, "CompileError"),
        (b"\xff\xfe", None, "CompileError"),
        (wasm_modules.TOO_MANY_IMPORTS, None, "LinkError"),
        (COUNTER, None, "LinkError"),
        (COUNTER, "subtract(1)", "LinkError"),
        (COUNTER, "add(1)", "RuntimeError"),
        (COUNTER, "add('a', 2)", "SyntaxError"),
        (COUNTER, "trap()", "RuntimeError"),
        (COUNTER, "deep()", "RuntimeError"),
        ("add(1, 2)", None, "LinkError"),
    ],
)
async def test_what_cannot_run_says_why(
    computer: Computer, witness: CodeContext, code: str | bytes, call: str | None, name: str
) -> None:
    result = await computer.wasm.execute(code, call=call)
    assert result.error is not None
    assert (result.error.name, bool(result.error.message)) == (name, True)
    await check_ended(result, witness)


async def test_only_wasm_has_calls(computer: Computer) -> None:
    with pytest.raises(FreeholdError, match="Only wasm"):
        await computer.python.execute("1", call="f()")
    with pytest.raises(FreeholdError, match="Only wasm"):
        await computer.python.execute(b"1")


async def test_a_context_keeps_the_memory_of_its_module(computer: Computer) -> None:
    context = await computer.wasm.contexts.create()
    await context.execute(COUNTER)
    assert [await context.evaluate("next()") for _ in range(3)] == [1, 2, 3]
    trapped = await context.execute("trap()")
    assert trapped.error is not None
    assert await context.evaluate("next()") == 4
    await context.execute(COUNTER)
    assert await context.evaluate("next()") == 1
    await context.delete()


async def test_a_context_survives_an_endless_loop(computer: Computer) -> None:
    context = await computer.wasm.contexts.create()
    await context.execute(COUNTER)
    await context.evaluate("next()")
    for _ in range(2):
        stopped = await context.execute("loop()", timeout=SHORT)
        assert (stopped.limit, stopped.error and stopped.error.name) == ("wall_time", "Interrupted")
        assert await context.evaluate("next()") > 1
    await context.delete()


async def test_every_isolate_draws_its_own_random_numbers(computer: Computer) -> None:
    drawn = await asyncio.gather(
        *(computer.wasm.evaluate(wasm_modules.RANDOM, call="draw()") for _ in range(8)),
    )
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize(
    ("code", "call", "limits", "limit"),
    [
        (COUNTER, "loop()", IsolateLimits(wall_time=SHORT), "wall_time"),
        (COUNTER, "loop()", IsolateLimits(processor=SHORT), "processor"),
        (wasm_modules.FLOOD, None, IsolateLimits(), "output"),
    ],
)
async def test_a_limit_ends_a_module_alone(
    computer: Computer, witness: CodeContext, code: str, call: str | None, limits: IsolateLimits, limit: str
) -> None:
    result = await computer.wasm.execute(code, call=call, limits=limits)
    await check_ended(result, witness)
    assert result.limit == limit


async def test_memory_stops_growing_at_the_limit(computer: Computer, witness: CodeContext) -> None:
    pages = await computer.wasm.evaluate(COUNTER, call="hoard()", limits=IsolateLimits(memory=32 << 20))
    assert 16 * 65536 < pages * 65536 <= 32 << 20
    assert await computer.wasm.evaluate(COUNTER, call="grow(4096)") == -1
    assert await witness.evaluate("add(1, 1)") == 2


async def test_files_are_there_only_if_they_are_granted(computer: Computer) -> None:
    async def run(path: str, write: bool, grants: Grants | None = None) -> int:
        return (await computer.wasm.execute(file_module(path, write=write), grants=grants)).exit_code

    reading, writing = Grants({"/workspace": "r"}), Grants({"/workspace/out": "rw"})
    assert await run("notes.txt", False) == NO_DESCRIPTOR
    assert await run("notes.txt", False, reading) == 0
    assert await run("new.txt", True, reading) != 0
    assert await run("../notes.txt", False, writing) == NOT_PERMITTED
    assert await run("new.txt", True, writing) == 0
    assert await computer.files.read("out/new.txt") == b""
    alone = await computer.wasm.execute(HELLO, grants=Grants({"/workspace/notes.txt": "r"}))
    assert alone.error is not None


async def test_files_go_in_and_come_back(computer: Computer) -> None:
    result = await computer.wasm.execute(
        file_module("made", write=True), inputs={"given": b"abc"}, outputs=("made", "given")
    )
    assert (result.exit_code, dict(result.files)) == (0, {})
    context = await computer.wasm.contexts.create()
    assert (await context.execute(file_module("given", write=False), inputs={"given": b"abc"})).exit_code == 0
    await context.delete()


async def is_kept(computer: Computer, module: str) -> bool:
    """Whether the computer can run the module when it is given no more than its hash."""
    link = await Link.connect(computer.transport)
    receiver = ExecutionReceiver(IsolateLimits(), 60.0, None)
    request = describe_isolate("wasm", IsolateLimits(), Grants(), None)
    digest = hashlib.sha256(module.encode()).hexdigest()
    channel = link.open({"op": "isolate", **request, "code": "next()", "module": digest}, receiver)
    try:
        async with asyncio.timeout(DEADLINE):
            await receiver.done
        return receiver.result().exit_code == 0
    except FreeholdError as error:
        if error.code != "computer.no-module":
            raise
        return False
    finally:
        channel.close()
        link.close()


async def test_a_module_is_compiled_once(computer: Computer) -> None:
    """The hash is enough the second time: the computer has what was compiled, and the bytes are not sent again."""
    module = COUNTER + ";; compiled once"
    assert not await is_kept(computer, module)
    assert await computer.wasm.evaluate(module, call="add(1, 2)") == 3
    assert await is_kept(computer, module)
    assert not await is_kept(computer, module + " and changed")


async def test_the_oldest_modules_are_forgotten(computer: Computer) -> None:
    first = COUNTER + ";; the oldest"
    await computer.wasm.evaluate(first, call="next()")
    for number in range(MAX_MODULES):
        await computer.wasm.evaluate(f'(module (func (export "f") (result i32) (i32.const {number})))', call="f()")
    assert not await is_kept(computer, first)
    assert await computer.wasm.evaluate(first, call="next()") == 1


async def test_a_context_that_ran_one_module_cannot_choose_what_is_kept_for_another(computer: Computer) -> None:
    """What it compiles later runs in it, and is compiled again elsewhere."""
    context = await computer.wasm.contexts.create()
    await context.execute(HELLO)
    other = COUNTER + ";; in a context"
    await context.execute(other)
    assert await context.evaluate("add(1, 2)") == 3
    assert not await is_kept(computer, other)
    await context.delete()


async def test_a_module_that_nobody_asked_for_ends_its_isolate(computer: Computer, witness: CodeContext) -> None:
    """Native code can write any record. Here Python does."""
    forged = await computer.python.execute("import os, time; os.write(100, b'\\x04\\x04\\0\\0\\0evil'); time.sleep(60)")
    await check_ended(forged, witness)
    assert forged.exit_code < 0


async def test_a_file_of_the_computer_runs(computer: Computer) -> None:
    await computer.files.write("add.wat", COUNTER.encode())
    result = await computer.wasm.execute_file("add.wat", call="add(1, 2)")
    assert result.value == 3
