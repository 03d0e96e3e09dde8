"""`/v1/code` with a complete Freehold, by the API and by the Python client."""

import asyncio
import base64
import dataclasses
import json
from contextlib import aclosing

import pytest
import pytest_asyncio
from tests.computer.isolates.test_python import FRAME
from tests.computer.isolates.wasm_modules import COUNTER, HELLO
from tests.support.condition import DEADLINE, until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold import Freehold, FreeholdError
from freehold.client.models import CodePart
from freehold.code.bodies import CodeLimitsBody
from freehold.computer import IsolateLimits

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions()


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def connected(freehold: RunningFreehold) -> None:
    await until(freehold.is_connected)


async def test_code_runs_and_returns_output_value_and_files(freehold: RunningFreehold) -> None:
    code = "open('b.txt', 'w').write(open('a.txt').read() * 2)\nprint('out')\n{'x': 42}"
    inputs = {"a.txt": base64.b64encode(b"ab").decode()}
    result = await freehold.call(
        "POST", "/v1/code/execute", language="python", code=code, inputs=inputs, outputs=["b.txt"]
    )
    assert (result["stdout"], result["exit_code"], result["error"], result["limit"]) == ("out\n", 0, None, None)
    value, file = result["items"]
    assert (value["role"], value["text"], value["data"]) == ("value", '{"x": 42}', None)
    assert (file["name"], base64.b64decode(file["data"])) == ("b.txt", b"abab")


async def test_nothing_is_granted_unless_the_request_says_so(freehold: RunningFreehold) -> None:
    freehold.file("notes.txt").write_text("granted")
    code = "open('/workspace/notes.txt').read()"
    refused = await freehold.call("POST", "/v1/code/execute", language="python", code=code)
    assert refused["error"]["name"] == "PermissionError"
    grants = {"files": {"/workspace/notes.txt": "r"}}
    allowed = await freehold.call("POST", "/v1/code/execute", language="python", code=code, grants=grants)
    assert allowed["items"][0]["text"] == '"granted"'
    unknown = await freehold.http.post(
        "/v1/code/execute", json={"language": "python", "code": "1", "grants": {"root": True}}
    )
    assert unknown.status_code == 422
    broken = await freehold.http.post(
        "/v1/code/execute", json={"language": "python", "code": "1", "inputs": {"a": "not base64"}}
    )
    assert broken.status_code == 400


async def test_the_client_has_contexts_that_keep_variables(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        context = await home.code.create_context("python", label="notes", limits={"wall_time": 1.0})
        await home.code.execute_in(context.id, "x = 40")
        assert (await home.code.execute_in(context.id, "x + 2")).items[0].text == "42"
        stopped = await home.code.execute_in(context.id, "while True: pass")
        assert stopped.limit == "wall_time"
        assert (await home.code.execute_in(context.id, "x")).items[0].text == "40"
        assert [(one.id, one.label) for one in await home.code.contexts()] == [(context.id, "notes")]
        await home.code.reset_context(context.id)
        failed = await home.code.execute_in(context.id, "x")
        assert failed.error is not None
        assert failed.error.name == "NameError"
        await home.code.delete_context(context.id)
        with pytest.raises(FreeholdError) as gone:
            await home.code.context(context.id)
        assert gone.value.code == "computer.no-context"


async def test_the_synchronous_client_runs_code_with_files(freehold: RunningFreehold) -> None:
    def script() -> str | None:
        with Freehold.sync(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
            return home.code.execute("python", "open('a').read()", inputs={"a": b"text"}).items[0].text

    assert await asyncio.to_thread(script) == '"text"'


async def test_the_client_evaluates_to_json_bytes_and_tables_and_raises_when_the_code_fails(
    freehold: RunningFreehold,
) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        assert await home.code.evaluate("python", "{'x': [1, None]}") == {"x": [1, None]}
        assert await home.code.evaluate("python", "open('a', 'rb').read()", inputs={"a": b"\x00\xff"}) == b"\x00\xff"
        table = await home.code.evaluate("python", FRAME)
        assert (table["columns"], table["rows"][0]) == (["name", "size"], ["a", 1])
        assert await home.code.evaluate("python", "x = 1") is None
        context = await home.code.create_context("python")
        await home.code.execute_in(context.id, "x = 40")
        assert await home.code.evaluate_in(context.id, "x + 2") == 42
        with pytest.raises(FreeholdError, match="NameError") as unknown:
            await home.code.evaluate_in(context.id, "y")
        with pytest.raises(FreeholdError, match="exit code 3") as left:
            await home.code.evaluate("python", "exit(3)")
        with pytest.raises(FreeholdError, match="wall_time") as slow:
            await home.code.evaluate("python", "while True: pass", limits={"wall_time": 0.2})
        await home.code.delete_context(context.id)
    assert [one.value.code for one in (unknown, left, slow)] == [
        "computer.code-failed",
        "computer.code-failed",
        "computer.limit",
    ]


async def test_a_file_of_the_computer_runs_by_the_api(freehold: RunningFreehold) -> None:
    freehold.file("sum.py").write_text("import sys\nprint(sys.argv[1:])\n40 + 2\n")
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        run = await home.code.execute_file("python", "sum.py", arguments=("a",))
        assert (run.stdout, run.items[0].text) == ("['a']\n", "42")
        with pytest.raises(FreeholdError, match=r"none\.py"):
            await home.code.execute_file("python", "none.py")
    both = {"language": "python", "code": "1", "file": "sum.py"}
    assert (await freehold.http.post("/v1/code/execute", json=both)).status_code == 400
    assert (await freehold.http.post("/v1/code/stream", json=both)).status_code == 400
    streamed = await freehold.http.post("/v1/code/stream", json={"language": "python", "file": "sum.py"})
    assert next(json.loads(line) for line in streamed.text.split("\n") if line) == {
        "output": {"stream": "stdout", "text": "[]\n"}
    }
    freehold.file("compiled.pyc").write_bytes(b"\xcb\r\r\n")
    binary = await freehold.http.post("/v1/code/execute", json={"language": "python", "file": "compiled.pyc"})
    assert (binary.status_code, binary.json()["error"]["code"]) == (400, "computer.bad-request")


async def test_a_file_of_the_computer_runs_in_a_context_by_the_api(freehold: RunningFreehold) -> None:
    freehold.file("more.py").write_text("x += 2\nprint(x)\n")
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        context = await home.code.create_context("python")
        await home.code.execute_in(context.id, "x = 40")
        assert (await home.code.execute_file_in(context.id, "more.py")).stdout == "42\n"
        assert await home.code.evaluate_in(context.id, "x") == 42
        address = f"/v1/code/contexts/{context.id}"
        both = {"code": "1", "file": "more.py"}
        assert (await freehold.http.post(f"{address}/execute", json=both)).status_code == 400
        streamed = await freehold.http.post(f"{address}/stream", json={"file": "more.py"})
        assert '"text":"44\\n"' in streamed.text
        await home.code.delete_context(context.id)


async def test_every_limit_can_be_changed_by_the_api(freehold: RunningFreehold) -> None:
    fields = CodeLimitsBody.model_fields
    assert set(fields) == {field.name for field in dataclasses.fields(IsolateLimits)}
    code = "open('a', 'wb').write(b'x' * (17 << 20))"
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        assert (await home.code.execute("python", code, outputs=("none",))).exit_code != 0
        raised = {"file_size": 32 << 20, "open_files": 16}
        assert await home.code.evaluate("python", code, outputs=("none",), limits=raised) == 17 << 20
        many = await home.code.execute("python", "[open('/dev/null') for _ in range(32)]", limits=raised)
        assert many.error is not None
        assert "Too many open files" in many.error.message


async def test_a_request_that_is_given_up_ends_its_code(freehold: RunningFreehold) -> None:
    """The context is free again, and its variables are there."""
    context = (
        await freehold.http.post("/v1/code/contexts", json={"language": "python", "limits": {"wall_time": 3600}})
    ).json()
    address = f"/v1/code/contexts/{context['id']}"
    await freehold.call("POST", f"{address}/execute", code="x = 1")
    with pytest.raises(FreeholdError):
        async with Freehold(freehold.url, token=freehold.token, timeout=3) as home:
            await home.code.execute_in(context["id"], "import time; time.sleep(600)")

    async def is_free() -> bool:
        return bool((await freehold.call("GET", address))["state"] == "ready")

    await until(is_free)
    assert (await freehold.call("POST", f"{address}/execute", code="x"))["items"][0]["text"] == "1"
    await freehold.call("DELETE", address)


async def test_output_arrives_while_the_code_runs(freehold: RunningFreehold) -> None:
    """The code waits for a file that is written when its first line has come."""
    go = freehold.file("go")
    code = (
        "import os, time\nprint('first ä', flush=True)\n"
        "while not os.path.exists('/workspace/go'): time.sleep(0.01)\n"
        "display([1])\nimport sys; sys.stderr.write('last')\n{'x': 1}"
    )
    seen: list[CodePart] = []
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        async for part in home.code.stream("python", code, grants={"files": {"/workspace": "r"}}):
            if not seen:
                go.write_text("")
            seen.append(part)
    texts = [(part.output and part.output.text) or (part.item and part.item.text) for part in seen]
    assert sorted(texts[:4], key=str) == sorted(["first ä\n", "[1]", "last", '{"x": 1}'], key=str)
    assert (texts[0], texts[3], texts[4]) == (
        "first ä\n",
        '{"x": 1}',
        None,
    )  # what was written before an item comes before
    end = seen[-1].end
    assert end is not None
    assert (end.exit_code, end.error) == (0, None)


async def test_a_stream_that_is_left_interrupts_its_context(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        context = await home.code.create_context("python", limits={"wall_time": 3600})
        endless = "x = 1\nprint('runs', flush=True)\nwhile True: pass"
        async with aclosing(home.code.stream_in(context.id, endless)) as parts:
            async for part in parts:
                assert part.output is not None
                break

        async def is_free() -> bool:
            return (await home.code.context(context.id)).state == "ready"

        await until(is_free)
        assert (await home.code.execute_in(context.id, "x")).items[0].text == "1"
        await home.code.delete_context(context.id)


async def test_another_program_can_interrupt_a_context(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        context = await home.code.create_context("python", limits={"wall_time": 3600})
        endless = "print('runs', flush=True)\nwhile True: pass"
        ends = []
        async for part in home.code.stream_in(context.id, endless):
            if part.output is not None:
                await home.code.interrupt_context(context.id)
            ends.append(part.end)
        assert ends[-1] is not None
        assert ends[-1].error is not None
        assert ends[-1].error.name == "KeyboardInterrupt"
        assert (await home.code.interrupt_context(context.id)).state == "ready"
        await home.code.delete_context(context.id)


async def test_a_stream_that_cannot_run_ends_with_its_error(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        with pytest.raises(FreeholdError) as unknown:
            [part async for part in home.code.stream_in("0" * 16, "1")]
        assert unknown.value.code == "computer.no-context"
        with pytest.raises(FreeholdError) as missing:
            [part async for part in home.code.stream("python", "1", grants={"packages": ["nothing"]})]
        assert missing.value.code == "computer.no-package"
        assert missing.value.hint


async def test_a_module_runs_by_the_api(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token, timeout=DEADLINE) as home:
        run = await home.code.execute("wasm", COUNTER.encode(), call="add(40, 2)")
        assert run.items[0].text == "42"
        hello = await home.code.execute("wasm", HELLO)
        assert (hello.stdout, hello.exit_code) == ("out\n", 3)
    both = {"language": "wasm", "code": "1", "module": "AA=="}
    assert (await freehold.http.post("/v1/code/execute", json=both)).status_code == 400
