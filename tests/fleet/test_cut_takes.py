"""Files come back from a node that is lost in the middle, or while the owner works in the same folder."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.two_folders import LIMITS, bring_back, connected, describe

from freehold.fleet import folder_copy, folder_transfer
from freehold.fleet.change_writer import ChangeWriter
from freehold.fleet.folder_copy import SentState, receive_changes, send_changes
from freehold.fleet.folder_state import FolderEntry, FolderState, read_folder
from freehold.fleet.wire import Stream


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    return here, there


class Copy:
    """The same folder here and on a node."""

    def __init__(self, here: Path, there: Path) -> None:
        self.here = here
        self.there = there
        self.sent = SentState()
        self.base: dict[str, FolderEntry] | None = {}
        self.path = here.with_name("s")

    async def take(self) -> tuple[str, ...]:
        """Returns what could not be copied. Both sides agree about what they have in common."""
        taken = await bring_back(self.there, self.here, self.base, self.path, self.sent)
        self.base = taken.base
        assert self.sent.settled == taken.base
        return taken.skipped

    async def take_and_lose_the_node(self, monkeypatch: pytest.MonkeyPatch, arrived: int) -> None:
        """It is gone when so many contents have arrived."""

        def send_some(*arguments: Any) -> Any:
            yield from list(read_pieces(*arguments))[:arrived]
            raise ConnectionResetError("the node is gone")

        read_pieces = folder_transfer._read_pieces

        async def serve(stream: Stream) -> None:
            with contextlib.suppress(ConnectionResetError):
                await send_changes(stream, self.there, self.sent, LIMITS)

        with monkeypatch.context() as patch:
            patch.setattr(folder_transfer, "_read_pieces", send_some)
            patch.setattr(folder_transfer, "_collect", lambda pieces: [one] if (one := next(pieces, None)) else [])
            async with connected(serve, self.path) as stream:
                with pytest.raises(asyncio.IncompleteReadError):
                    await receive_changes(stream, self.here, self.base, LIMITS)


def read_all(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


def move(there: Path) -> None:
    (there / "data.bin").rename(there / "renamed.bin")


def move_and_write_again(there: Path) -> None:
    (there / "data.bin").rename(there / "moved.bin")
    (there / "data.bin").write_text("new")


def move_into_a_folder_of_the_same_name(there: Path) -> None:
    (there / "data.bin").rename(there / "draft")
    (there / "data.bin").mkdir()
    (there / "draft").rename(there / "data.bin" / "part")


def move_and_leave_a_link(there: Path) -> None:
    (there / "data.bin").rename(there / "moved.bin")
    (there / "data.bin").symlink_to("moved.bin")


def pack(there: Path) -> None:
    (there / "pack").write_text("".join((there / name).read_text() for name in ("data.bin", "deep/other")))
    (there / "data.bin").unlink()
    (there / "deep" / "other").unlink()
    (there / "deep").rmdir()
    (there / "deep").write_text("a file now")


MOVES = [move, move_and_write_again, move_into_a_folder_of_the_same_name, move_and_leave_a_link, pack]


@pytest.mark.parametrize("change", MOVES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("arrived", [0, 1])
async def test_a_node_that_is_lost_while_its_files_arrive_costs_at_most_what_is_new(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], arrived: int
) -> None:
    """What it has moved or packed is still here, under its old name, and nothing half done is beside it."""
    copy = Copy(*folders)
    (copy.there / "data.bin").write_text("of the owner")
    (copy.there / "deep").mkdir()
    (copy.there / "deep" / "other").write_text("also")
    await copy.take()
    before = read_all(copy.here)
    change(copy.there)
    (copy.there / "zz").write_text("sent last")
    await copy.take_and_lose_the_node(monkeypatch, arrived)
    after = read_all(copy.here)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= set(read_all(copy.there)), "no draft is left"
    copy.base = None  # as the next head
    await copy.take()
    assert describe(copy.here) == describe(copy.there)


@pytest.mark.parametrize("change", MOVES[:4], ids=lambda change: change.__name__)
async def test_what_was_moved_and_changed_while_it_was_sent_stays_under_its_old_name(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    copy = Copy(*folders)
    (copy.there / "folder").mkdir()
    for name in ("data.bin", "folder/inner"):
        (copy.there / name).write_text("of the owner")
    await copy.take()
    before = read_all(copy.here)
    change(copy.there)
    (copy.there / "folder" / "inner").unlink()
    (copy.there / "folder").rmdir()

    def look_too_early(*arguments: Any) -> FolderState:
        state = read_folder(*arguments)
        for one in copy.there.rglob("*"):
            if one.is_file() and one.read_text() == "of the owner":
                one.write_text("written to in between")
        return state

    with monkeypatch.context() as patch:
        patch.setattr(folder_copy, "read_folder", look_too_early)
        await copy.take()
    after = read_all(copy.here)
    assert {name: after[name] for name in before} == before
    await copy.take()
    assert describe(copy.here) == describe(copy.there)


def remove(there: Path) -> None:
    for one in (there / "build").iterdir():
        one.unlink()
    (there / "build").rmdir()


def replace_by_link(there: Path) -> None:
    remove(there)
    (there / "build").symlink_to("/usr")


def replace_by_file(there: Path) -> None:
    remove(there)
    (there / "build").write_text("a file now")


@pytest.mark.parametrize("change", [remove, replace_by_link, replace_by_file], ids=lambda change: change.__name__)
@pytest.mark.parametrize("is_next_head", [False, True])
async def test_a_file_that_exists_only_here_stays_when_its_folder_is_removed_there(
    folders: tuple[Path, Path], change: Callable[[Path], None], is_next_head: bool
) -> None:
    copy = Copy(*folders)
    (copy.there / "build").mkdir()
    (copy.there / "build" / "a").write_text("made")
    await copy.take()
    (copy.here / "build" / "notes.txt").write_text("of the owner")
    (copy.here / "build" / "deep").mkdir()
    change(copy.there)
    if is_next_head:
        copy.base = None
    is_blocked = change is not remove
    assert await copy.take() == (("build",) if is_blocked else ())
    assert read_all(copy.here) == {"build/notes.txt": "of the owner"}
    assert (copy.here / "build" / "deep").is_dir()
    assert await copy.take() == (("build",) if is_blocked else ())
    (copy.here / "build" / "notes.txt").rename(copy.here / "notes.txt")
    (copy.here / "build" / "deep").rmdir()
    await copy.take()
    if is_blocked:
        (copy.here / "notes.txt").unlink()
        assert describe(copy.here) == describe(copy.there), "there is room for it now"


async def test_what_has_become_a_folder_or_a_file_here_is_not_removed(folders: tuple[Path, Path]) -> None:
    copy = Copy(*folders)
    (copy.there / "file").write_text("made")
    (copy.there / "folder").mkdir()
    await copy.take()
    (copy.here / "file").unlink()
    (copy.here / "file").mkdir()
    (copy.here / "folder").rmdir()
    (copy.here / "folder").write_text("of the owner")
    (copy.there / "file").unlink()
    (copy.there / "folder").rmdir()
    await copy.take()
    assert (copy.here / "file").is_dir()
    assert (copy.here / "folder").read_text() == "of the owner"


@pytest.mark.parametrize("is_a_file", [False, True])
async def test_files_come_back_also_when_their_folder_was_removed_here(
    folders: tuple[Path, Path], is_a_file: bool
) -> None:
    copy = Copy(*folders)
    (copy.there / "deep" / "er").mkdir(parents=True)
    (copy.there / "deep" / "er" / "a").write_text("old")
    (copy.there / "other").write_text("old")
    await copy.take()
    (copy.here / "deep" / "er" / "a").unlink()
    (copy.here / "deep" / "er").rmdir()
    (copy.here / "deep").rmdir()
    if is_a_file:
        (copy.here / "deep").write_text("of the owner")
    for name in ("deep/er/a", "other"):
        (copy.there / name).write_text("new")
    await copy.take()
    assert read_all(copy.here) == {"deep/er/a": "new", "other": "new"}


def test_drafts_of_a_head_that_was_killed_are_written_over_by_the_next_one(tmp_path: Path) -> None:
    """It has the same computer, and takes the same files again."""
    file = FolderEntry("file", "file", 0o644, 0, 3, "")
    link = FolderEntry("link", "link", 0o777, 0, 0, "file")
    folder = FolderEntry("folder", "folder", 0o755, 0, 0, "")
    (tmp_path / "folder").write_text("in the way")
    base = {one.path: one for one in (file, link)}
    killed = ChangeWriter(tmp_path, base, "computer")
    killed.write_file(file, b"old")
    killed.make_link(link)
    killed.make_folder(folder)
    assert len(list(tmp_path.iterdir())) == 4
    with ChangeWriter(tmp_path, base, "computer") as again:
        again.write_file(file, b"new")
        again.make_folder(folder)
        assert again.finish([], [link], ()) == set()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder", "link"]
    assert (tmp_path / "file").read_bytes() == b"new"
    os.close(killed._root)


async def test_a_thread_that_writes_is_waited_for_when_its_take_is_cancelled() -> None:
    """Else it would go on with handles that are of other files by then."""
    begun, may_end = asyncio.Event(), threading.Event()
    loop, ended = asyncio.get_running_loop(), []

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait()
        ended.append(True)

    taking = asyncio.ensure_future(folder_transfer.finish_thread(work))
    await begun.wait()
    taking.cancel()
    await asyncio.sleep(0)
    assert not taking.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert ended
