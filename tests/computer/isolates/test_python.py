"""Python in isolates: values, output, files, contexts, streams and cancellation."""

import asyncio

import pytest
from tests.support.condition import DEADLINE, until

from freehold.computer import (
    CodeContext,
    CodeLanguage,
    CodeResult,
    Computer,
    DataTable,
    Grants,
    IsolateLimits,
    OutputChunk,
    ResultItem,
)
from freehold.errors import FreeholdError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

FRAME = """
class DataFrame:
    shape, columns = (3, 2), ["name", "size"]
    def head(self, most): return self
    def rows(self): return [("a", 1), ("b", 2.5), ("c", float("nan"))]
DataFrame()
"""
PICTURE = """
class Drawing:
    def _repr_png_(self): return b"\\x89PNG picture"
display(Drawing())
display({"x": 1})
"""
PYPLOT = """
_figures = {}
class Figure:
    def __init__(self, number): self.number, self.words = number, ""
    def savefig(self, target, *, format, bbox_inches=None):
        target.write(b"\\x89PNG %d %s %s" % (self.number, self.words.encode(), format.encode()))
def figure(number=None):
    number = max(_figures, default=0) + 1 if number is None else number
    return _figures.setdefault(number, Figure(number))
def get_fignums(): return sorted(_figures)
def close(which):
    if which == "all": _figures.clear()
    else: _figures.pop(which.number)
"""
"""The part of `matplotlib.pyplot` that shows figures; the library itself is not installed for tests."""
FIGURES = """
import sys
sys.path.insert(0, "/workspace/library")
import matplotlib.pyplot as plt
plt.figure(7).words = "last"
plt.figure(2).words = "first"
plt.close(plt.figure())
"drawn"
"""


async def test_execute_returns_output_value_and_exit_code(computer: Computer) -> None:
    result = await computer.python.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert (result.stdout, result.stderr, result.value, result.exit_code) == (b"out\n", b"err\n", 42, 0)
    assert result.ok


async def test_an_exception_has_its_name_message_and_line(computer: Computer) -> None:
    result = await computer.python.execute("x = 1\nraise ValueError('no')")
    assert result.error is not None
    assert (result.error.name, result.error.message, result.exit_code) == ("ValueError", "no", 1)
    assert "line 2, in <module>\n    raise ValueError('no')" in result.error.traceback
    assert "python_runner" not in result.error.traceback
    with pytest.raises(FreeholdError, match="ValueError: no"):
        result.check()


async def test_exit_gives_its_code(computer: Computer) -> None:
    assert (await computer.python.execute("import sys; sys.exit(7)")).exit_code == 7
    assert (await computer.python.execute("import os; os._exit(3)")).exit_code == 3
    assert (await computer.python.execute("raise SystemExit('bye')")).stderr == b"bye\n"


async def test_evaluate_returns_json_bytes_and_tables(computer: Computer) -> None:
    assert await computer.python.evaluate("{'a': [1, None, 'ä', True, 1.5]}") == {"a": [1, None, "ä", True, 1.5]}
    assert await computer.python.evaluate("bytes(range(256)) * 2000") == bytes(range(256)) * 2000
    table = await computer.python.evaluate(FRAME)
    assert table == DataTable(("name", "size"), (("a", 1), ("b", 2.5), ("c", None)), (), 3)
    assert await computer.python.evaluate("x = 1") is None
    assert (await computer.python.evaluate("object")) == "<class 'object'>"


async def test_pictures_and_displayed_values_come_in_order(computer: Computer) -> None:
    result = await computer.python.execute(PICTURE)
    assert [(item.role, item.type) for item in result.items] == [("display", "image/png"), ("display", "json")]
    assert result.items[0].content == b"\x89PNG picture"


async def test_open_figures_come_back_as_pictures_once(computer: Computer) -> None:
    await computer.files.mkdir("library/matplotlib", parents=True)
    await computer.files.write("library/matplotlib/__init__.py", b"")
    await computer.files.write("library/matplotlib/pyplot.py", PYPLOT.encode())
    context = await computer.python.contexts.create(grants=Grants({"/workspace/library": "r"}))
    result = await context.execute(FIGURES)
    assert [(item.role, item.type, item.content) for item in result.items] == [
        ("value", "json", b'"drawn"'),
        ("display", "image/png", b"\x89PNG 2 first png"),
        ("display", "image/png", b"\x89PNG 7 last png"),
    ]
    again = await context.execute("plt.figure().words = 'new'")
    assert [item.content for item in again.items] == [b"\x89PNG 1 new png"]
    assert (await context.execute("None")).items == ()
    await context.delete()


async def test_a_file_of_the_computer_is_executed(computer: Computer) -> None:
    await computer.files.write("script.py", b"1/0")
    result = await computer.python.execute_file("script.py")
    assert result.error is not None
    assert 'File "script.py", line 1' in result.error.traceback
    await computer.files.write("script.pyc", b"\xcb\r\r\n")
    with pytest.raises(FreeholdError, match=r"script\.pyc is not text") as refused:
        await computer.python.execute_file("script.pyc")
    assert refused.value.code == "computer.bad-request"


async def test_a_file_of_the_computer_is_executed_in_a_context(computer: Computer) -> None:
    """It finds the variables of the context and leaves its own there."""
    await computer.files.write("double.py", b"import sys\ny = 2 * x\n[y, sys.argv]")
    context = await computer.python.contexts.create()
    await context.execute("x = 21")
    result = await context.execute_file("double.py", arguments=("a",))
    assert result.value == [42, ["double.py", "a"]]
    assert await context.evaluate("y") == 42
    with pytest.raises(FreeholdError) as missing:
        await context.execute_file("none.py")
    assert missing.value.code == "files.not-found"
    await context.delete()


async def test_input_files_are_read_and_result_files_come_back(computer: Computer) -> None:
    code = "data = open('in.txt').read()\nopen('upper.txt', 'w').write(data.upper())\nopen('x.bin', 'wb').write(b'no')"
    result = await computer.python.execute(code, inputs={"in.txt": b"abc" * 100_000}, outputs=("*.txt",))
    assert dict(result.files) == {"in.txt": b"abc" * 100_000, "upper.txt": b"ABC" * 100_000}

    async def folder_is_gone() -> bool:
        return not (await computer.run("ls -d /tmp/isolate-*/x.bin")).ok

    await until(folder_is_gone)
    with pytest.raises(FreeholdError, match="not the name of a file"):
        await computer.python.execute("1", inputs={"../x": b""})


async def test_a_context_keeps_variables_files_and_its_folder(computer: Computer) -> None:
    context = await computer.python.contexts.create(label="notes")
    await context.execute("import math\nx = 20\nopen('kept.txt', 'w').write('kept')")
    assert await context.evaluate("x + int(math.sqrt(484))") == 42
    assert (await context.execute("1", outputs=("kept.txt",))).files == {"kept.txt": b"kept"}
    assert [one.label for one in await computer.python.contexts.list() if one.id == context.id] == ["notes"]
    again = await computer.python.contexts.get(context.id)
    assert await again.evaluate("_ + 0 if isinstance(_, int) else _") is not None
    await context.reset()
    failed = await context.execute("x")
    assert failed.error is not None
    assert failed.error.name == "NameError"
    assert (await context.execute("1", outputs=("kept.txt",))).files == {}
    await context.delete()
    with pytest.raises(FreeholdError) as gone:
        await context.execute("1")
    assert gone.value.code == "computer.no-context"


async def test_contexts_do_not_share_variables(computer: Computer) -> None:
    first, second = await computer.python.contexts.create(), await computer.python.contexts.create()
    await first.execute("import json; secret = 1; json.secret = 1")
    result = await second.execute("import json; [hasattr(json, 'secret'), 'secret' in globals()]")
    assert result.value == [False, False]
    await first.delete()
    await second.delete()


async def test_a_busy_context_refuses_a_second_execution_and_is_free_after_it(computer: Computer) -> None:
    context = await computer.python.contexts.create()
    started = asyncio.Event()
    running = asyncio.create_task(
        context.execute("print('now', flush=True)\nimport time; time.sleep(60)", listener=lambda _: started.set())
    )
    await asyncio.wait_for(started.wait(), DEADLINE)
    with pytest.raises(FreeholdError) as busy:
        await context.execute("1")
    assert busy.value.code == "computer.busy"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await until_state(context, "ready")
    assert await context.evaluate("1 + 1") == 2
    await context.delete()


async def guest_processor_time(computer: Computer) -> float:
    """Seconds. The guest is process 1."""
    fields = (await computer.run("cat /proc/1/stat")).text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def test_code_that_waits_costs_the_guest_no_processor_time(computer: Computer) -> None:
    """Also between executions: a context that nobody uses must not keep the guest busy."""
    context = await computer.python.contexts.create()
    await context.execute("import time")
    before = await guest_processor_time(computer)
    await asyncio.gather(
        context.execute("time.sleep(1)"),
        computer.python.execute("import time; time.sleep(1)"),
        computer.javascript.execute("await new Promise((go) => setTimeout(go, 1000))"),
    )
    assert await guest_processor_time(computer) - before < 0.5
    await context.delete()


async def until_state(context: CodeContext, state: str) -> None:
    async def reached() -> bool:
        return (await context.info()).state == state

    await until(reached)


async def test_output_and_results_stream_while_the_code_runs(computer: Computer) -> None:
    """The code waits for a file that is written when its first line has arrived."""
    await computer.run("rm -f out/go")
    code = "import os, time\nprint('first', flush=True)\nwhile not os.path.exists('/workspace/out/go'): time.sleep(0.005)\nprint('second')\n3"
    seen: list[object] = []
    async for part in computer.python.stream(code, grants=Grants({"/workspace/out": "r"})):
        seen.append(part)
        if part == OutputChunk("stdout", b"first\n"):
            await computer.files.write("out/go", b"")
    assert seen[0] == OutputChunk("stdout", b"first\n")
    assert OutputChunk("stdout", b"second\n") in seen
    assert any(isinstance(part, ResultItem) and part.value() == 3 for part in seen)
    assert isinstance(seen[-1], CodeResult)


async def test_cancelling_kills_the_isolate(computer: Computer) -> None:
    started = asyncio.Event()
    code = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
    pids: list[int] = []

    def listen(part: OutputChunk | ResultItem) -> None:
        assert isinstance(part, OutputChunk)
        pids.append(int(part.data))
        started.set()

    running = asyncio.create_task(computer.python.execute(code, listener=listen))
    await asyncio.wait_for(started.wait(), DEADLINE)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    async def is_gone() -> bool:
        return pids[0] not in {process.pid for process in await computer.processes()}

    await until(is_gone)


async def test_every_isolate_draws_its_own_random_numbers(computer: Computer) -> None:
    code = "import random, secrets, uuid\n[random.random(), secrets.token_hex(8), str(uuid.uuid4())]"
    drawn = await asyncio.gather(*(computer.python.evaluate(code) for _ in range(8)))
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)


async def test_an_unknown_package_is_refused_and_nothing_is_fetched(computer: Computer) -> None:
    with pytest.raises(FreeholdError, match="The package 'pandas' is not prepared in this computer"):
        await computer.python.contexts.create(packages=("pandas",))


async def test_a_hundred_at_once_all_answer(computer: Computer) -> None:
    values = await asyncio.gather(*(computer.python.evaluate(f"{number} * 2") for number in range(100)))
    assert values == [number * 2 for number in range(100)]


async def test_idle_zygotes_end_and_come_back() -> None:
    async with Computer.start() as computer:
        assert await computer.python.evaluate("1") == 1
        impatient = CodeLanguage(computer._connection, "python", idle_after=0.0)
        assert await impatient.evaluate("2") == 2

        async def none_left() -> bool:
            return not [one for one in await computer.processes() if "--zygote" in one.command]

        await until(none_left)
        assert await computer.python.evaluate("3") == 3


async def test_a_killed_zygote_ends_its_isolates_and_the_next_request_starts_another(computer: Computer) -> None:
    context = await computer.python.contexts.create()
    await context.execute("x = 1")
    zygotes = [one.pid for one in await computer.processes() if "--zygote" in one.command and one.parent == 1]
    await computer.run(["kill", "-9", *map(str, zygotes)])
    await until_state(context, "ended")
    with pytest.raises(FreeholdError) as ended:
        await context.execute("x")
    assert ended.value.code == "computer.context-ended"
    await context.reset()
    assert await context.evaluate("5") == 5
    await context.delete()


async def test_the_kill_switch_ends_isolates_of_sessions_and_no_others(computer: Computer) -> None:
    owners = await computer.python.contexts.create()
    agents = await computer.python.contexts.create(apart="session 1")
    for context in (owners, agents):
        await context.execute("x = 1")
    await computer.end_sessions()
    await until_state(agents, "ended")
    assert await owners.evaluate("x") == 1
    await owners.delete()
    await agents.delete()


async def test_limits_are_checked_before_anything_starts(computer: Computer) -> None:
    with pytest.raises(FreeholdError, match="memory must be a number"):
        await computer.python.execute("1", limits=IsolateLimits(memory=0))
    with pytest.raises(FreeholdError, match="must be an absolute path"):
        await computer.python.execute("1", grants=Grants({"notes.txt": "r"}))
    with pytest.raises(FreeholdError) as missing:
        await computer.python.execute("1", grants=Grants({"/workspace/nowhere": "r"}))
    assert missing.value.code == "computer.isolate-refused"
