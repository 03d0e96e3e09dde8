"""JavaScript and TypeScript in isolates."""

import asyncio

import pytest

from freehold.computer import Computer, DataTable

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


async def test_execute_returns_output_value_and_exit_code(computer: Computer) -> None:
    result = await computer.javascript.execute("console.log('out'); console.error('err'); 6 * 7")
    assert (result.stdout, result.stderr, result.value, result.exit_code) == (b"out\n", b"err\n", 42, 0)


async def test_values_come_back_as_json_bytes_and_text(computer: Computer) -> None:
    assert await computer.javascript.evaluate("({a: [1, null, 'ä', true]})") == {"a": [1, None, "ä", True]}
    assert await computer.javascript.evaluate("new Uint8Array([1, 2, 255])") == b"\x01\x02\xff"
    assert await computer.javascript.evaluate("new Map([[1, 2]]).get") == "[Function: get]"
    assert await computer.javascript.evaluate("undefined") is None


async def test_rows_become_a_table_and_an_array_of_objects_stays_json(computer: Computer) -> None:
    rows = "[{city: 'Bern', people: 134591}, {city: 'Köln', area: 405.02}]"
    plain = [{"city": "Bern", "people": 134591}, {"city": "Köln", "area": 405.02}]
    assert await computer.javascript.evaluate(rows) == plain
    table = await computer.javascript.evaluate(f"table({rows})")
    cells = (("Bern", 134591, None), ("Köln", None, 405.02))
    assert table == DataTable(("city", "people", "area"), cells, (), 2)
    typed = "interface Row { n: number }\nconst rows: Row[] = [{ n: 1 }]\ntable(rows)"
    assert await computer.typescript.evaluate(typed) == DataTable(("n",), ((1,),), (), 1)
    chosen = await computer.javascript.evaluate("table([['a', 1], ['b', 2]], [1, 0])")
    assert chosen == DataTable(("1", "0"), ((1, "a"), (2, "b")), (), 2)


async def test_a_table_has_its_first_thousand_rows_and_every_cell_is_json(computer: Computer) -> None:
    table = await computer.javascript.evaluate("table(Array.from({length: 5000}, (_, n) => ({n})))")
    assert (len(table.rows), table.rows[-1], table.total) == (1000, (999,), 5000)
    odd = "[NaN, 1n << 64n, new Date(0), new Date(NaN), [1, {a: 2}], Symbol('s'), undefined, true]"
    (cells,) = (await computer.javascript.evaluate(f"table([{odd}])")).rows
    assert cells == (
        *(None, "18446744073709551616", "1970-01-01T00:00:00.000Z", None),
        *("[ 1, { a: 2 } ]", "Symbol(s)", None, True),
    )
    shown = await computer.javascript.execute("display(table([{a: 1}])); const table2 = 1; table2")
    assert [(item.role, item.type) for item in shown.items] == [("display", "table"), ("value", "json")]
    refused = await computer.javascript.execute("table([1, 2])")
    assert refused.error is not None
    assert refused.error.message == "table() takes rows that are objects or arrays"
    assert await computer.javascript.evaluate("const table = 5; table") == 5


async def test_promises_are_awaited_and_await_works_at_the_top(computer: Computer) -> None:
    assert await computer.javascript.evaluate("Promise.resolve(5)") == 5
    assert await computer.javascript.evaluate("await new Promise(r => setTimeout(r, 5)); return 42") == 42


@pytest.mark.parametrize("thrown", ["new TypeError('no')", "null", "undefined", "'text'"])
async def test_whatever_is_thrown_is_an_error(computer: Computer, thrown: str) -> None:
    result = await computer.javascript.execute(f"throw {thrown}")
    assert result.error is not None
    assert result.exit_code == 1


async def test_a_late_exception_ends_the_execution(computer: Computer) -> None:
    result = await computer.javascript.execute(
        "setTimeout(() => { throw new Error('late') }, 1); await new Promise(() => {})"
    )
    assert result.error is not None
    assert result.error.message == "late"


async def test_typescript_is_stripped_of_its_types(computer: Computer) -> None:
    code = "interface Point { x: number }\nconst p: Point = { x: 41 };\nconsole.log((p as any).x satisfies number);\np.x + 1"
    result = await computer.typescript.execute(code)
    assert (result.value, result.stdout) == (42, b"41\n")
    refused = await computer.typescript.execute("enum A { B }")
    assert refused.error is not None


async def test_a_context_keeps_variables_and_typescript_has_contexts_too(computer: Computer) -> None:
    context = await computer.javascript.contexts.create()
    await context.execute("const x = 40; let later = 0; setTimeout(() => { later = 2 }, 1)")
    assert await context.evaluate("await new Promise(r => setTimeout(r, 10)); return x + later") == 42
    await context.delete()
    typed = await computer.typescript.contexts.create()
    await typed.execute("const y: number = 1")
    assert await typed.evaluate("(y as number) + 1") == 2
    await typed.delete()


async def test_a_context_survives_endless_loops_and_promises(computer: Computer) -> None:
    context = await computer.javascript.contexts.create()
    await context.execute("globalThis.k = 5")
    for endless in ("for (;;);", "await new Promise(() => {})", "for (;;) console.log('x'.repeat(10000))"):
        stopped = await context.execute(endless, timeout=0.3)
        assert stopped.limit in ("wall_time", "output"), endless
        assert await context.evaluate("k") == 5, endless
    await context.delete()


async def test_a_context_is_interrupted_whatever_its_code_did_with_the_signal(computer: Computer) -> None:
    context = await computer.javascript.contexts.create()
    await context.execute("globalThis.k = 5")
    for listens in (
        "await 1",
        "process.on('SIGINT', () => {})",
        "await 1",
        "process.removeAllListeners('SIGINT')",
        "process.once('SIGINT', () => {}); process.removeAllListeners('SIGINT')",
    ):
        await context.execute(listens)
        assert (await context.execute("for (;;);", timeout=0.2)).limit == "wall_time", listens
        assert await context.evaluate("k") == 5, listens
    await context.delete()


async def test_files_go_in_and_come_back(computer: Computer) -> None:
    code = "const fs = require('fs'); fs.writeFileSync('b.txt', fs.readFileSync('a.txt', 'utf8').toUpperCase())"
    result = await computer.javascript.execute(code, inputs={"a.txt": b"abc"}, outputs=("b.*",))
    assert dict(result.files) == {"b.txt": b"ABC"}


async def test_every_isolate_knows_its_own_pid(computer: Computer) -> None:
    pids = await asyncio.gather(*(computer.javascript.evaluate("process.pid") for _ in range(3)))
    assert len(set(pids)) == 3


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        ("'<b>x</b>', 'text/html'", ("text", "<b>x</b>")),
        ("Buffer.from('abc'), 'application/x-own'", ("text", "abc")),
        ("'<svg/>', 'image/svg+xml'", ("image/svg+xml", b"<svg/>")),
        ("'[1]', 'json'", ("json", [1])),
        ("'{', 'json'", ("text", "{")),
        ("Buffer.from([34, 255, 34]), 'json'", ("text", '"\N{REPLACEMENT CHARACTER}"')),
        ("'{}', 'table'", ("text", "{}")),
        ("'null', 'table'", ("text", "null")),
        ("""'{"columns": ["a"], "rows": [[1, 2]], "total": 1}', 'table'""", ("text", None)),
        ("""'{"columns": ["a"], "rows": [[1]], "total": 1}', 'table'""", ("table", DataTable(("a",), ((1,),), (), 1))),
    ],
)
async def test_what_is_displayed_with_a_type_that_nobody_knows_is_text(
    computer: Computer, shown: str, seen: tuple[str, object]
) -> None:
    result = await computer.javascript.execute(f"display({shown}); 5")
    (item,) = [one for one in result.items if one.role == "display"]
    assert item.type == seen[0]
    assert seen[1] is None or item.value() == seen[1]
    assert result.value == 5


async def test_every_isolate_draws_its_own_random_numbers(computer: Computer) -> None:
    code = "const c = require('crypto'); [Math.random(), c.randomUUID(), c.randomBytes(8).toString('hex'), c.randomInt(2 ** 40)]"
    drawn = await asyncio.gather(*(computer.javascript.evaluate(code) for _ in range(8)))
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)
