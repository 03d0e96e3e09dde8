"""File operations compared with a model: a dictionary that behaves as a file system."""

import asyncio
import posixpath
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from freehold.computer import Computer
from freehold.errors import FreeholdError

Answer = TypeVar("Answer")
NAMES = st.sampled_from(["a", "b", "c\n", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.binary(max_size=200)


class Model:
    """Paths to contents; None is a folder."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes | None] = {}

    def parent_ok(self, path: str) -> bool:
        parent = posixpath.dirname(path)
        return parent == "" or (parent in self.nodes and self.nodes[parent] is None)

    def below(self, path: str) -> list[str]:
        return [name for name in self.nodes if name.startswith(path + "/")]

    def file(self, path: str) -> bool:
        return self.nodes.get(path) is not None

    def write(self, path: str, content: bytes) -> bool:
        if not self.parent_ok(path) or (path in self.nodes and not self.file(path)):
            return False
        self.nodes[path] = content
        return True

    def append(self, path: str, content: bytes) -> bool:
        return self.write(path, (self.nodes.get(path) or b"") + content)

    def mkdir(self, path: str) -> bool:
        if not self.parent_ok(path) or path in self.nodes:
            return False
        self.nodes[path] = None
        return True

    def transfer(self, path: str, to: str, *, keep: bool) -> bool:
        inside = to == path or to.startswith(path + "/")
        if path not in self.nodes or to in self.nodes or not self.parent_ok(to) or inside:
            return False
        for name in [path, *self.below(path)]:
            self.nodes[to + name[len(path) :]] = self.nodes[name]
            if not keep:
                del self.nodes[name]
        return True

    def remove(self, path: str, *, recursive: bool) -> bool:
        if path not in self.nodes or (self.below(path) and not recursive):
            return False
        for name in [path, *self.below(path)]:
            del self.nodes[name]
        return True


class FilesAgainstModel(RuleBasedStateMachine):
    computer: Computer
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.run(self._clear())

    async def _clear(self) -> None:
        for entry in await self.computer.files.list():
            await self.computer.files.remove(entry.name, recursive=True)

    def run(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(call)

    def agree(self, expected: bool, call: Coroutine[Any, Any, object]) -> None:
        code = ""
        try:
            self.run(call)
        except FreeholdError as error:
            code = error.code
        assert code.startswith("files.") if not expected else code == ""

    @rule(path=PATHS, content=CONTENTS)
    def write(self, path: str, content: bytes) -> None:
        self.agree(self.model.write(path, content), self.computer.files.write(path, content))

    @rule(path=PATHS, content=CONTENTS)
    def append(self, path: str, content: bytes) -> None:
        self.agree(self.model.append(path, content), self.computer.files.append(path, content))

    @rule(path=PATHS)
    def mkdir(self, path: str) -> None:
        self.agree(self.model.mkdir(path), self.computer.files.mkdir(path))

    @rule(path=PATHS, to=PATHS)
    def move(self, path: str, to: str) -> None:
        self.agree(self.model.transfer(path, to, keep=False), self.computer.files.move(path, to))

    @rule(path=PATHS, to=PATHS)
    def copy(self, path: str, to: str) -> None:
        self.agree(self.model.transfer(path, to, keep=True), self.computer.files.copy(path, to))

    @rule(path=PATHS, recursive=st.booleans())
    def remove(self, path: str, recursive: bool) -> None:
        self.agree(self.model.remove(path, recursive=recursive), self.computer.files.remove(path, recursive=recursive))

    @rule(path=PATHS, offset=st.integers(0, 250), length=st.integers(0, 250))
    def read(self, path: str, offset: int, length: int) -> None:
        content = self.model.nodes.get(path)
        if content is None:
            self.agree(False, self.computer.files.read(path))
        else:
            assert (
                self.run(self.computer.files.read(path, offset=offset, length=length))
                == content[offset : offset + length]
            )

    @invariant()
    def the_tree_is_the_model(self) -> None:
        entries = self.run(self.computer.files.walk())
        assert {entry.name: entry.kind for entry in entries} == {
            path: "folder" if content is None else "file" for path, content in self.model.nodes.items()
        }


def test_files_behave_as_the_model_does() -> None:
    with asyncio.Runner() as runner:
        computer = runner.run(_start())

        class Bound(FilesAgainstModel):
            pass

        Bound.computer, Bound.runner = computer, runner
        try:
            from hypothesis.stateful import run_state_machine_as_test

            run_state_machine_as_test(Bound, settings=settings(max_examples=30, stateful_step_count=30, deadline=None))
        finally:
            runner.run(computer.close())


async def _start() -> Computer:
    return await Computer.start()
