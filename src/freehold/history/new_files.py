"""Writes many new files in staging, in several threads: the kernel does most of the work, and it holds up no other thread."""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from freehold.history.contents import ContentReader, DamagedContent, write_all
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.tree_reader import WrittenFile

NamePath = tuple[bytes, ...]
Owner = tuple[int, int]
_BATCH_STEPS = 128
_SAMPLE_EVERY = 4  # only some creations are timed: reading the clock costs as much as closing a file
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Destination(Protocol):
    """Where one thread makes its files."""

    def locate(self, step: RestoreStep) -> tuple[int, bytes]:
        """The folder and the name of the new file. OSError when the folder cannot be entered."""

    def note_creation_time(self, seconds: float) -> None:
        """How long the creation of a file took, of processor time. It may raise an error that ends all threads."""

    def close(self) -> None: ...


class NewFiles:
    """What was made, by place, and the paths that could not be made with the reason."""

    def __init__(self) -> None:
        self.made: dict[int, WrittenFile] = {}
        self.failed: dict[NamePath, str] = {}

    def write(
        self,
        steps: Sequence[RestoreStep],
        readers: Sequence[ContentReader],
        open_destination: Callable[[], Destination],
        owner: Owner | None,
        advance: Callable[[int], None],
    ) -> None:
        """Write the files and symlinks of these steps. Each reader is used by a thread of its own.

        The first one is used by the caller's thread, which regularly calls `advance` with the number of steps that were
        done since the last call, in all threads. OSError when the disk is full.
        """
        batches = _Batches(steps)
        writers = [_BatchWriter(batches, reader, open_destination(), owner) for reader in readers]
        others = [threading.Thread(target=writer.run_aside, name="history-write") for writer in writers[1:]]
        for thread in others:
            thread.start()
        try:
            writers[0].run(advance)
        finally:
            batches.stop()
            for thread in others:
                thread.join()
        for writer in writers:
            if writer.error is not None:
                raise writer.error
            self.made.update(writer.made)
            self.failed.update(writer.failed)
        advance(batches.take_done())


class _Batches:
    """The steps that are still to be done, and a count of those that were done since it was last taken. Thread-safe."""

    def __init__(self, steps: Sequence[RestoreStep]) -> None:
        self._steps = steps
        self._lock = threading.Lock()
        self._at = self._done = 0

    def __iter__(self) -> Iterator[Sequence[RestoreStep]]:
        while True:
            with self._lock:
                some = self._steps[self._at : self._at + _BATCH_STEPS]
                self._at += len(some)
            if not some:
                return
            yield some
            with self._lock:
                self._done += len(some)

    def take_done(self) -> int:
        with self._lock:
            done, self._done = self._done, 0
        return done

    def stop(self) -> None:
        with self._lock:
            self._at = len(self._steps)


class _BatchWriter:
    """Writes files in one thread, batch by batch. `error` is what ended it early."""

    def __init__(self, batches: _Batches, reader: ContentReader, destination: Destination, owner: Owner | None) -> None:
        self._batches = batches
        self._reader = reader
        self._destination = destination
        self._owner = owner
        self._creations = 0
        self.made: dict[int, WrittenFile] = {}
        self.failed: dict[NamePath, str] = {}
        self.error: Exception | None = None

    def run_aside(self) -> None:
        try:
            self.run()
        except Exception as error:  # the caller's thread raises it
            self.error = error
            self._batches.stop()

    def run(self, advance: Callable[[int], None] | None = None) -> None:
        try:
            for steps in self._batches:
                if advance is not None:
                    advance(self._batches.take_done())
                self._reader.prefetch([step.target.content for step in steps if step.target is not None])
                for step in steps:
                    self._write(step)
        finally:
            self._destination.close()

    def _write(self, step: RestoreStep) -> None:
        target = step.target
        assert target is not None
        assert target.content is not None
        try:
            parent, name = self._destination.locate(step)
        except OSError as error:
            if is_disk_full(error):
                raise
            self.failed[step.path] = "its folder could not be created"
            return
        try:
            if target.is_link:
                self._make_symlink(parent, name, target, target.content)
            else:
                self.made[step.place] = self._make_file(parent, name, target, target.content)
        except DamagedContent as error:
            self.failed[step.path] = error.message
        except OSError as error:
            if is_disk_full(error):
                raise
            self.failed[step.path] = os.strerror(error.errno or 0)

    def _make_symlink(self, parent: int, name: bytes, target: PathVersion, content: int) -> None:
        os.symlink(self._reader.read(content), name, dir_fd=parent)
        if self._owner is not None:
            os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)
        os.utime(name, ns=(target.mtime, target.mtime), dir_fd=parent, follow_symlinks=False)

    def _make_file(self, parent: int, name: bytes, target: PathVersion, content: int) -> WrittenFile:
        small = self._reader.take_small(content)
        handle = self._create(parent, name, target.mode & 0o777)
        try:
            if small is None:
                write_content(handle, self._reader, content)
            elif small:
                write_all(handle, small)
            if self._owner is not None:
                os.fchown(handle, *self._owner)
            mtime = target.mtime
            os.utime(handle, ns=(mtime, mtime))
            found = os.fstat(handle)
            if found.st_mode != target.mode:
                os.fchmod(handle, stat.S_IMODE(target.mode))
                found = os.fstat(handle)
            return WrittenFile(found.st_ino, found.st_ctime_ns, target)
        except BaseException:
            os.unlink(name, dir_fd=parent)
            raise
        finally:
            os.close(handle)

    def _create(self, parent: int, name: bytes, mode: int) -> int:
        self._creations += 1
        if self._creations % _SAMPLE_EVERY:
            return os.open(name, _NEW_FILE, mode, dir_fd=parent)
        began = time.thread_time()
        handle = os.open(name, _NEW_FILE, mode, dir_fd=parent)
        try:
            self._destination.note_creation_time(time.thread_time() - began)
        except BaseException:
            os.close(handle)
            raise
        return handle


def write_content(handle: int, reader: ContentReader, content: int) -> None:
    """A hole stays a hole: it needs no space."""
    small = reader.take_small(content)
    if small is not None:
        write_all(handle, small)
        return
    for piece in reader.pieces(content):
        if isinstance(piece, int):
            os.ftruncate(handle, os.lseek(handle, piece, os.SEEK_CUR))
            continue
        write_all(handle, piece)


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
