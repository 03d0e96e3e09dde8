"""Undo while other threads write to the same files, read the history and follow its changes."""

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history import History

ROUNDS = 400
SECONDS = 10.0


def write_at_random(folder: Path, chance: random.Random) -> None:
    """One small act: write, link, rename, make or remove a folder. Others do the same at the same time."""
    name = folder / f"d{chance.randrange(4)}" / f"f{chance.randrange(12)}"
    with suppress(OSError):
        match chance.randrange(6):
            case 0 | 1:
                name.parent.mkdir(parents=True, exist_ok=True)
                name.write_text(str(chance.random()))
            case 2:
                os.link(name, name.with_name(f"l{chance.randrange(6)}"))
            case 3:
                name.rename(name.with_name(f"f{chance.randrange(12)}"))
            case 4:
                name.unlink()
            case _:
                shutil.rmtree(name.parent)


def test_undo_never_fails_while_others_write_read_and_follow(history: History, workspace: Path) -> None:
    """0.1.0 raised "Set changed size during iteration" in 61 of 456 such rounds."""
    broken: list[BaseException] = []
    ending = threading.Event()

    @contextmanager
    def keep_doing(act: Callable[[], object]) -> Iterator[None]:
        def run() -> None:
            try:
                while not ending.is_set():
                    act()
            except BaseException as error:
                broken.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def read() -> None:
        history.log(limit=5)
        history.list_restores()
        history.interrupted()
        history.notices()
        history.stream.read(history.stream.sequence, 0.001)

    rounds = 0
    until = time.monotonic() + SECONDS
    with ExitStack() as stack:
        for seed in range(3):
            stack.enter_context(keep_doing(partial(write_at_random, workspace, random.Random(seed))))
        stack.enter_context(keep_doing(read))
        while rounds < ROUNDS and time.monotonic() < until and not broken:
            history.snapshot("turn")
            try:
                history.undo()
            except FreeholdError as error:
                if error.code != "history.nothing-to-undo":  # every entry was undone already
                    raise
            else:
                rounds += 1
    assert not broken
    assert rounds > 0
    assert history.interrupted() is None
    history.snapshot()
    assert history.verify().damages == ()
