"""One piece of code for each language of isolates, and what its walls must refuse it, on every backend."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.computer.isolates.wasm_modules import COUNTER, file_module

from freehold.computer import IsolateLimits
from freehold.computer.isolates.language import CodeLanguage, LanguageName

PRIVATE = "/workspace/private.txt"
"""A file that every program inside may read, and that is granted to no isolate."""
NO_DESCRIPTOR = "8"
"""WASI's error for a folder that was not granted."""
EMULATED = IsolateLimits(wall_time=200, processor=200)
"""The first isolate of a language waits for its interpreter, which takes long on an emulated processor."""


@dataclass(frozen=True)
class IsolateCase:
    one_shot: str
    """Evaluates to 42."""
    prepare: str
    """Executed once in a context."""
    value: str
    """Evaluates to 42 in it."""
    forbidden: Mapping[str, str]
    """Code, and what is seen of its refusal."""
    call: str | None = None
    """The function of the module `one_shot` that is called."""

    async def check(self, language: CodeLanguage) -> None:
        assert await language.evaluate(self.one_shot, call=self.call, limits=EMULATED) == 42
        context = await language.contexts.create(limits=EMULATED)
        await context.execute(self.prepare)
        assert await context.evaluate(self.value) == 42
        await context.delete()
        for code, refusal in self.forbidden.items():
            ended = await language.execute(code, limits=EMULATED)
            assert not ended.ok
            assert refusal in (f"{ended.error.name}: {ended.error.message}" if ended.error else str(ended.exit_code))


CASES: Mapping[LanguageName, IsolateCase] = {
    "python": IsolateCase(
        "6 * 7",
        "x = 41",
        "x + 1",
        {
            f"open({PRIVATE!r})": "PermissionError: [Errno 13]",
            "import os; os.fork()": "PermissionError: [Errno 1]",
            "import socket; socket.create_connection(('127.0.0.1', 3128))": "PermissionError: [Errno 1]",
        },
    ),
    "javascript": IsolateCase(
        "6 * 7",
        "var x = 41",
        "x + 1",
        {
            f"require('fs').readFileSync({PRIVATE!r})": "EACCES",
            "require('child_process').execFileSync('/bin/true')": "EPERM",
        },
    ),
    "typescript": IsolateCase(
        "const y: number = 42; y",
        "var x: number = 41",
        "(x as number) + 1",
        {f"require('fs').readFileSync({PRIVATE!r} as string)": "EACCES"},
    ),
    "wasm": IsolateCase(
        COUNTER,
        COUNTER,
        "add(40, 2)",
        {file_module("private.txt", write=False): NO_DESCRIPTOR},
        call="add(40, 2)",
    ),
}
