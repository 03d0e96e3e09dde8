"""Ways out of other sandboxes for code, tried for real. Each reaches its own process, and from there nothing else.

Secrets are planted where an escape would look: in variables and folders of sibling contexts, in code that ran just before,
in files outside of every grant, and in the environment of a program of the owner. No attempt brings one of them back,
starts a program, signals a process, or reaches a program that listens.

The kinds are those of advisories as far as we could read them. Our code is not their proof of concept, and a wall that is
inside a language (a proxy, a list of allowed names) has no counterpart here, so that only the outcome can be compared.

| kind of advisory                        | for example                                     | tried as                                  |
|-----------------------------------------|-------------------------------------------------|-------------------------------------------|
| constructor chain to host objects       | GHSA-v264-xqh4-9xmm (node:vm), vm2              | constructor of a host function, exception, object in another context |
| exceptions of the host, stack traces    | CVE-2022-36067, CVE-2023-29199, CVE-2026-22709, GHSA-r273-hxvj-fxhp (vm2) | exception while a stack is formatted, call sites |
| functions and traps that the host calls | CVE-2023-37903, CVE-2023-30547 (vm2)            | function for inspection, proxy            |
| promises and generators of the host     | CVE-2026-22709, CVE-2026-45411 (vm2)            | promise of another species, async generator |
| internal modules of Node                | CVE-2026-47140 (vm2), CVE-2023-32559 (Node)     | inspector, module loader, internal binding |
| machine code from the attacker          | CVE-2022-39266 (isolated-vm)                    | test_a_forged_code_cache                  |
| native libraries                        | GHSA-6w8r-xxw2-g3hx, GHSA-46pr-c5wc-xffx (vm2)  | addon, SQLite, OpenSSL, ctypes            |
| memory that no limit counts             | Monty 0.0.21, WebAssembly in several            | growing WebAssembly, and test_caps.py     |
| class hierarchy, ctypes                 | "Cellbreak" of Grist, CVE-2025-68668 (n8n), both Pyodide | subclasses, globals, ctypes, system calls |
| frames and collected objects            | CVE-2023-37271 (RestrictedPython)               | generator, traceback, tracer, garbage collector |
| format strings, AttributeError.obj      | CVE-2023-41039 (RestrictedPython), CVE-2026-0863 (n8n) | format string, AttributeError      |
| forged code, pickles, crashes           | Monty issue 112                                 | code object, pickle, CRASHES              |
| what others left in memory              | uninitialised buffers                           | memory of an isolate                      |

Escapes by WebAssembly modules are in test_wasm.py, attacks on the channel and the zygote in test_attacks.py.
"""

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from tests.computer.isolates.escape_attempts import (
    CRASHES,
    FORGED_CACHE,
    JAVASCRIPT,
    JAVASCRIPT_MEMORY,
    JAVASCRIPT_WAYS,
    PYTHON,
    PYTHON_MEMORY,
    PYTHON_WAYS,
    SYSTEM_CALLS,
)

from freehold.computer import CodeContext, CodeResult, Computer, Grants, IsolateLimits
from freehold.computer.contract.conventions import AGENT_HOME, GUEST_PYTHON, WORKSPACE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

TIMEOUT = 50
REFUSED = {f"refused {word}" for word in ("EACCES", "EPERM", "PermissionError")}
REFUSED_CALLS = {"EPERM", "EACCES", "ENOSYS"}
# Says its pid and port, and answers everybody who connects.
OWNERS_PROGRAM = """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), listener.getsockname()[1], flush=True)
while True: listener.accept()[0].send(b"heard")
"""
CONNECT = "import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode())"
LIBRARY = "print(next(line.split()[-1] for line in open('/proc/self/maps') if '.so' in line))"
SIBLING_PYTHON = "import os; secret = {secret!r}; open('secret', 'w').write(secret); os.getpid()"
SIBLING_JAVASCRIPT = "var secret = {secret!r}; require('fs').writeFileSync('secret', secret); process.pid"


def plant() -> str:
    return f"planted-{secrets.token_hex(8)}"


@dataclass(frozen=True)
class Planted:
    """The secrets by where they are, what an attempt is told, and two siblings that must live on."""

    secrets: dict[str, str]
    given: dict[str, Any]
    siblings: tuple[CodeContext, CodeContext]

    async def check(self, result: CodeResult) -> None:
        """Nothing that came back has a secret, and both siblings still have theirs."""
        shown = b"\n".join((result.stdout, result.stderr, *(item.content for item in result.items))).decode()
        shown += "" if result.error is None else f"{result.error.message}\n{result.error.traceback}"
        assert [place for place, secret in self.secrets.items() if secret in shown] == []
        for sibling in self.siblings:
            assert await sibling.evaluate("secret") == self.secrets[sibling.language]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted(computer: Computer) -> AsyncIterator[Planted]:
    places = ("python", "javascript", "workspace", "home", "environment", "one-shot")
    secret = {place: plant() for place in places}
    files = {"workspace": f"{WORKSPACE}/secret.txt", "home": f"{AGENT_HOME}/secret.txt"}
    for place, path in files.items():
        await computer.files.write(path, secret[place].encode())
    python = await computer.python.contexts.create()
    javascript = await computer.javascript.contexts.create()
    pids = [
        await python.evaluate(SIBLING_PYTHON.format(secret=secret["python"])),
        await javascript.evaluate(SIBLING_JAVASCRIPT.format(secret=secret["javascript"])),
    ]
    environment = {"SECRET": secret["environment"]}
    async with await computer.spawn([GUEST_PYTHON, "-c", OWNERS_PROGRAM], env=environment) as program:
        pid, port = map(int, (await program.stdout.read()).split())
        folders = [WORKSPACE, AGENT_HOME, python.folder, javascript.folder]
        library = (await computer.run([GUEST_PYTHON, "-c", LIBRARY])).check().stdout.decode().strip()
        given = {
            "files": [*files.values(), f"{python.folder}/secret", f"{javascript.folder}/secret"],
            "folders": folders,
            "pids": [1, *pids, pid],
            "port": port,
            "library": library,
        }
        yield Planted(secret, given, (python, javascript))
        heard = await computer.run([GUEST_PYTHON, "-c", CONNECT.format(port=port)], timeout=TIMEOUT)
        assert heard.check().stdout == b"heard\n", "the program that listens must be there, or no test means anything"
        program.kill()


def check_refused(result: CodeResult) -> None:
    assert result.ok, result
    value = result.value
    assert value["inside"] is True
    assert len(value["found"]) > 30
    assert {what: seen for what, seen in value["found"].items() if seen not in REFUSED} == {}


@pytest.mark.parametrize("way", JAVASCRIPT_WAYS)
async def test_javascript_that_has_seized_its_process_reaches_nothing_else(
    computer: Computer, planted: Planted, way: str
) -> None:
    code = JAVASCRIPT.replace("GIVEN", json.dumps(planted.given)).replace("WAY", JAVASCRIPT_WAYS[way])
    result = await computer.javascript.execute(code, timeout=TIMEOUT)
    await planted.check(result)
    check_refused(result)


@pytest.mark.parametrize("way", PYTHON_WAYS)
async def test_python_that_has_seized_its_process_reaches_nothing_else(
    computer: Computer, planted: Planted, way: str
) -> None:
    code = PYTHON.replace("GIVEN", json.dumps(planted.given)).replace("WAY", PYTHON_WAYS[way])
    result = await computer.python.execute(code, timeout=TIMEOUT)
    await planted.check(result)
    check_refused(result)


async def test_native_code_is_refused_every_call_that_leads_out(computer: Computer, planted: Planted) -> None:
    code = SYSTEM_CALLS.replace("GIVEN", json.dumps(planted.given))
    result = await computer.python.execute(code, timeout=TIMEOUT)
    await planted.check(result)
    assert result.ok, result
    assert {what: seen for what, seen in result.value.items() if seen not in REFUSED_CALLS} == {}


@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_the_memory_of_an_isolate_has_nothing_of_those_before_and_beside_it(
    computer: Computer, planted: Planted, language: str
) -> None:
    """An isolate is a copy of its zygote. The zygote never runs foreign code, so that there is nothing to inherit."""
    runs = computer.python if language == "python" else computer.javascript
    code = PYTHON_MEMORY if language == "python" else JAVASCRIPT_MEMORY
    for _ in range(3):
        assert await runs.evaluate(f"{planted.secrets['one-shot']!r}") == planted.secrets["one-shot"]
    limits = IsolateLimits(memory=512 << 20)
    result = await runs.execute(code, timeout=TIMEOUT, limits=limits)
    await planted.check(result)
    assert result.ok, result
    assert result.value == []


@pytest.mark.parametrize("what", CRASHES)
async def test_code_that_breaks_its_interpreter_ends_alone(computer: Computer, planted: Planted, what: str) -> None:
    result = await computer.python.execute(CRASHES[what], timeout=TIMEOUT)
    await planted.check(result)
    assert not result.ok, result
    assert result.limit != "wall_time"


async def test_a_forged_code_cache_harms_nobody_else(computer: Computer, planted: Planted) -> None:
    """V8 does not check machine code that it is given. Whatever this isolate does with it, the others have their secrets."""
    await planted.check(await computer.javascript.execute(FORGED_CACHE, timeout=5))


async def test_memory_of_webassembly_counts_as_memory(computer: Computer, planted: Planted) -> None:
    limits = IsolateLimits(memory=64 << 20)
    grow = (
        "const memory = new WebAssembly.Memory({ initial: 0, maximum: 65536 }); let pages = 0;"
        "try { for (;;) { memory.grow(64); new Uint8Array(memory.buffer).fill(1, pages * 65536); pages += 64; } }"
        "catch (error) { [error.name, pages * 65536] }"
    )
    result = await computer.javascript.execute(grow, timeout=TIMEOUT, limits=limits)
    await planted.check(result)
    assert result.ok, result
    name, size = result.value
    assert name == "RangeError"
    assert 16 << 20 < size <= limits.memory


async def test_the_attempts_find_the_secrets_where_they_are_granted(computer: Computer, planted: Planted) -> None:
    """The same code as above. If it could not find a secret that is there, its silence would say nothing."""
    granted = Grants({WORKSPACE: "r"}, network=True)
    way = JAVASCRIPT_WAYS["the constructor of a host function"]
    code = JAVASCRIPT.replace("GIVEN", json.dumps(planted.given)).replace("WAY", way)
    found = (await computer.javascript.evaluate(code, timeout=TIMEOUT, grants=granted))["found"]
    assert found[f"read {WORKSPACE}/secret.txt"] == f"got {planted.secrets['workspace']}"
    assert found[f"read {AGENT_HOME}/secret.txt"] == "refused EACCES"
    way = PYTHON_WAYS["the frame of a generator"]
    code = PYTHON.replace("GIVEN", json.dumps(planted.given)).replace("WAY", way)
    found = (await computer.python.evaluate(code, timeout=TIMEOUT, grants=granted))["found"]
    assert found[f"read {WORKSPACE}/secret.txt"] == f"got {planted.secrets['workspace']!r}"
    for language, code in (("python", PYTHON_MEMORY), ("javascript", JAVASCRIPT_MEMORY)):
        runs = computer.python if language == "python" else computer.javascript
        own = await runs.contexts.create(limits=IsolateLimits(memory=512 << 20))
        secret = plant()
        await own.execute(f"secret = {secret!r}")
        assert await own.evaluate(code, timeout=TIMEOUT) == [secret]
        await own.delete()
