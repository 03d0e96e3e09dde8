"""A commit of a git repository as a folder.

Only commands that read objects are used, with options that keep a repository from running programs: its own
configuration may name some.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from freehold.computer.mounts.unpacked import MAX_LINK, FolderWriter, UnpackedFolders
from freehold.errors import FreeholdError

GIT_TIMEOUT = 120.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SAFE = (
    *("-c", "safe.directory=*", "-c", "protocol.allow=never", "-c", "core.sshCommand=/bin/false"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
}


def provide_commit(repository: Path, commit: str, folders: UnpackedFolders) -> Path:
    """The files of a commit, a tag or a branch as it is now. Raises `computer.mount-missing` and `computer.mount-refused`."""
    name = find_commit(repository, commit)
    return folders.provide(
        f"git:{repository}:{name}", f"{repository} at {commit}", lambda writer: _write_tree(repository, name, writer)
    )


def find_commit(repository: Path, commit: str) -> str:
    """The full name of a commit, a tag or a branch as it is now. Raises `computer.mount-missing`."""
    if commit.startswith("-"):
        raise FreeholdError("computer.mount-missing", f"{commit[:100]!r} is not the name of a commit")
    found = _run(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    name = found.decode(errors="replace").strip()
    if not _COMMIT.fullmatch(name):
        raise FreeholdError("computer.mount-missing", f"{repository} has no commit {commit[:100]!r}")
    return name


class ObjectReader:
    """Reads the contents of objects, one after the other. Use it as a context manager."""

    def __init__(self, repository: Path) -> None:
        self._command = ["git", *_SAFE, "-C", str(repository), "cat-file", "--batch"]

    def __enter__(self) -> "ObjectReader":
        self._git = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._git.stdin is not None
        self._git.stdin.close()
        self._git.kill()
        self._git.__exit__(None, None, None)

    def open(self, number: str) -> "OpenObject | None":
        """None when there is no file with this number. It must be closed before the next is opened."""
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.write(f"{number}\n".encode())
        self._git.stdin.flush()
        words = self._git.stdout.readline().split()
        if len(words) != 3 or words[1] != b"blob":
            return None
        return OpenObject(self._git.stdout, int(words[2]))


class OpenObject:
    """The content of one object."""

    def __init__(self, output: IO[bytes], size: int) -> None:
        self._output = output
        self._left = size

    def read(self, most: int) -> bytes:
        data = self._output.read(min(most, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        """Skips what was not read, and the line end after it."""
        while self.read(1 << 20):
            pass
        self._output.read(1)


def _write_tree(repository: Path, commit: str, writer: FolderWriter) -> None:
    entries = list(list_commit(repository, commit))
    with ObjectReader(repository) as objects:
        for mode, number, name in entries:
            if mode == "160000":  # a submodule: its files are in another repository
                writer.add_folder(name)
                continue
            found = objects.open(number)
            if found is None:
                raise writer.refuse(f"the object of {name[:200]!r} is missing")
            if mode == "120000":
                writer.add_link(name, found.read(MAX_LINK + 1).decode(errors="surrogateescape"))
            else:
                writer.add_file(name, found.read, executable=mode == "100755")
            found.close()


def list_commit(repository: Path, commit: str) -> Iterator[tuple[str, str, str]]:
    """Mode, number of the object and path of everything in a commit. `commit` is its full name."""
    for entry in _run(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        if entry:
            head, _, name = entry.partition(b"\t")
            mode, _, number = head.decode().split()
            yield mode, number, name.decode(errors="surrogateescape")


def _run(repository: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *_SAFE, "-C", str(repository), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_ENVIRONMENT,
            timeout=GIT_TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise FreeholdError("computer.mount-missing", "git is not installed", hint="apt install git") from None
    except subprocess.TimeoutExpired:
        raise FreeholdError("computer.mount-refused", f"git took too long to read {repository}") from None
    if done.returncode and words[0] != "rev-parse":
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise FreeholdError(
            "computer.mount-refused",
            f"git cannot read {repository}: {why[-1] if why else 'no reason given'}",
            kind="invalid",
        )
    return done.stdout
