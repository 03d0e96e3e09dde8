"""`import`, `export`, and `await` at the top of JavaScript and TypeScript, and what a context keeps of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder

from freehold.computer import Computer, Grants, Mount

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

GRANTED = Grants(files={"/workspace/code": "r"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prepared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    place = folder / "shout" / "node_modules"
    write(place / "shout" / "index.js", "exports.shout = (text) => text.toUpperCase()")
    write(place / "@own" / "words" / "index.mjs", "export default 'words'; export const more = 2")
    write(place / "@own" / "words" / "package.json", '{"exports": {"import": "./index.mjs"}}')
    write(folder / "words" / "node_modules" / "words" / "index.mjs", "export default 'words'")
    write(folder / "words" / "node_modules" / "words" / "package.json", '{"exports": {"import": "./index.mjs"}}')
    write(folder / "events" / "node_modules" / "events" / "index.js", "exports.own = true")
    mounts = [Mount(node_folder(), NODE_PLACE), Mount(folder, "/opt/packages")]
    async with Computer.start(mounts=mounts) as computer:
        await computer.run("mkdir code private")
        await computer.files.write(
            "code/lib.mjs", b"import { two } from './two.mjs'; export const one = 1, three = one + two"
        )
        await computer.files.write("code/two.mjs", b"export const two = 2; export default 'two'")
        await computer.files.write("code/main.mjs", b"import { three } from './lib.mjs';\nexport const x = three;\nx")
        await computer.files.write("code/types.ts", b"export const typed: number = 4")
        await computer.files.write("private/lib.mjs", b"export const one = 1")
        yield computer


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import fs from 'node:fs'; typeof fs.readFileSync", "function"),
        (
            "import { sep as s, default as path } from 'path'\nimport * as all from 'node:path'\n[s, all.sep, path.sep]",
            ["/", "/", "/"],
        ),
        ("join('a', 'b'); import { join } from 'node:path'; join('c', 'd')", "c/d"),
        ("import('node:path').then((path) => path.sep)", "/"),
        ("const { sep } = await import('node:path'); sep", "/"),
        ("async function f() { return (await import('node:path')).sep }\nf()", "/"),
        ("export const a = 1; export default a + 1", 2),
        ("export function f() { return 3 }\nexport { f as g }\nf()", 3),
        ("import 'node:fs'\n[1].map((x) => x)", [1]),
        ("export default\n  2", 2),
        ("import.meta.filename.endsWith('/<cell 1>')", True),
        ("for (const x of [[4]]) var [y] = x\nawait y", 4),
        ("#!/usr/bin/env node\nimport 'node:fs'; 1", 1),
    ],
)
async def test_built_in_modules_are_imported(prepared: Computer, code: str, value: object) -> None:
    assert await prepared.javascript.evaluate(code) == value
    assert await prepared.typescript.evaluate(code) == value


async def test_types_are_removed_before_imports_are_read(prepared: Computer) -> None:
    code = "import type { Stats } from 'node:fs'\nimport { sep } from 'node:path'\nconst s: string = sep\nexport const t: Stats | string = s\nt"
    assert await prepared.typescript.evaluate(code) == "/"


async def test_granted_files_are_imported_and_others_are_not(prepared: Computer) -> None:
    evaluate = prepared.javascript.evaluate
    assert await evaluate("import { three } from '/workspace/code/lib.mjs'; three", grants=GRANTED) == 3
    assert await evaluate("import two from 'file:///workspace/code/two.mjs'; two", grants=GRANTED) == "two"
    assert (await prepared.javascript.execute_file("/workspace/code/main.mjs", grants=GRANTED)).check().value == 3
    for code in ("import { one } from '/workspace/private/lib.mjs'", "await import('/workspace/private/lib.mjs')"):
        refused = await prepared.javascript.execute(code, grants=GRANTED)
        assert refused.error is not None
        assert "EACCES" in refused.error.message
    result = await prepared.javascript.execute(
        "import { a } from './a.mjs'; a", inputs={"a.mjs": b"export const a = 5"}
    )
    assert result.value == 5
    typed = "import { typed } from '/workspace/code/types.ts'; typed as number"
    assert await prepared.typescript.evaluate(typed, grants=GRANTED) == 4


async def test_prepared_packages_are_imported_and_others_are_not(prepared: Computer) -> None:
    for language in (prepared.javascript, prepared.typescript):
        both = Grants(packages=("shout", "words"))
        code = "import { shout } from 'shout'; import words from 'words'; shout(words)"
        assert await language.evaluate(code, grants=both) == "WORDS"
        scoped = "import words, { more } from '@own/words'; [words, more]"
        assert await language.evaluate(scoped, grants=Grants(packages=("shout",))) == ["words", 2]
        assert not (await language.execute(code)).ok


async def test_a_package_with_the_name_of_a_module_of_node_is_that_module(prepared: Computer) -> None:
    code = "import { EventEmitter } from 'events'; [typeof EventEmitter, require('events').own]"
    assert await prepared.javascript.evaluate(code, grants=Grants(packages=("events",))) == ["function", None]


async def test_a_name_that_a_module_does_not_export_is_an_error(prepared: Computer) -> None:
    refused = await prepared.javascript.execute("import { nope } from 'node:fs'")
    assert refused.error is not None
    assert refused.error.message == "The module 'node:fs' has no export named nope"
    broken = await prepared.javascript.execute("import { from 'node:fs'")
    assert broken.error is not None
    assert broken.error.name == "SyntaxError"
    assert "1:" in broken.error.message


async def test_errors_after_an_import_name_the_line_of_the_code(prepared: Computer) -> None:
    result = await prepared.javascript.execute("import fs from 'node:fs'\nconst x = await 1\n  null.x")
    assert result.error is not None
    assert "<cell 1>:3:" in result.error.traceback


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("await Promise.resolve(5)", 5),
        ("await (async () => 6)()", 6),
        ("const f = () => {}\n/re/.test('re'); await 7", 7),
        ("await 1; const x = 1", None),
        ("let n = 0; for await (const x of [1, 2]) n += x\nn", 3),
        ("if (await 1) { return 8 }\n9", 8),
    ],
)
async def test_the_last_expression_is_the_value_also_after_await(prepared: Computer, code: str, value: object) -> None:
    assert await prepared.javascript.evaluate(code) == value


async def test_what_a_cell_with_await_declares_is_there_in_the_next(prepared: Computer) -> None:
    context = await prepared.javascript.contexts.create()
    await context.execute(
        "const a = await 1, { b, c: [d = 4], ...rest } = await { b: 2, c: [], e: 5 }; let later;\n"
        "function f() { return a + later }\nclass Own { n = 7 }\nfor (var i = 0; i < 3; i++) {}\n"
        "if (await 1) { var inner = 8 }\nimport { sep } from 'node:path'\nlater = 10"
    )
    names = "[a, b, d, rest, later, f(), new Own().n, i, inner, sep]"
    assert await context.evaluate(names) == [1, 2, 4, {"e": 5}, 10, 11, 7, 3, 8, "/"]
    assert await context.evaluate("await f()") == 11
    await context.delete()


async def test_a_cell_does_not_change_what_runs_the_next(prepared: Computer) -> None:
    for code in (
        "import { setImmediate, setTimeout } from 'node:timers/promises'; const process = await 1; var Buffer, performance = 2",
        "const { setImmediate } = require('timers/promises'), process = 1, Buffer = 2, performance = 3; 4",
    ):
        context = await prepared.javascript.contexts.create()
        (await context.execute(code)).check()
        assert await context.evaluate("await process") == 1
        assert await context.evaluate("[process]") == [1]
        await context.delete()


async def test_a_cell_with_await_can_run_again(prepared: Computer) -> None:
    context = await prepared.javascript.contexts.create()
    failing = await context.execute("import { sep } from 'node:path'; const x = await Promise.reject(new Error('no'))")
    assert failing.error is not None
    for number in range(2):
        assert await context.evaluate(f"import {{ sep }} from 'node:path'; const x = await {number}; x") == number
    typed = await prepared.typescript.contexts.create()
    await typed.execute("const y: number = await Promise.resolve(1)")
    assert await typed.evaluate("(y as number) + 1") == 2
    for one in (context, typed):
        await one.delete()
