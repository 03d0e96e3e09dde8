"""Stores that misbehave, around a real one, and the death of a process at one step."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from freehold.backup.stores.contract import BackupStore, StoredObject


class WatchedStore:
    """Calls `watch` before and after every step, with its name."""

    def __init__(self, store: BackupStore, watch: Callable[[str], None]) -> None:
        self.where = "the watched store"
        self._store = store
        self._watch = watch

    def put(self, name: str, data: bytes) -> None:
        self._watch(f"before put {name}")
        self._store.put(name, data)
        self._watch(f"after put {name}")

    def create(self, name: str, data: bytes) -> None:
        self._watch(f"before create {name}")
        self._store.create(name, data)
        self._watch(f"after create {name}")

    def get(self, name: str) -> bytes:
        self._watch(f"before get {name}")
        return self._store.get(name)

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        self._watch(f"before list {folder}")
        yield from self._store.list_objects(folder)

    def delete(self, name: str) -> None:
        self._watch(f"before delete {name}")
        self._store.delete(name)
        self._watch(f"after delete {name}")

    def read_clock(self) -> float:
        return self._store.read_clock()

    def close(self) -> None:
        self._store.close()


class DeathAt:
    """Ends this process with SIGKILL at the step with this number."""

    def __init__(self, step: int) -> None:
        self._left = step

    def __call__(self, _: str) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def run_in_child(work: Callable[[], object]) -> bool:
    """Run it in a process of its own. Whether it came to its end; False when it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, "the work failed; see its traceback"
    return True


def copy_tree(source: Path, target: Path) -> None:
    """As it is, links and times included."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
