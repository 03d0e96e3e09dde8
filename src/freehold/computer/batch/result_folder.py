"""Results of a task as files of this machine. What a computer names is checked: nothing is written elsewhere."""

import errno
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from freehold.computer.batch.task import Task
from freehold.errors import FreeholdError

MAX_NAME = 60
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_ODD_NAMES = frozenset({errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})
"""What the file system answers to names that cannot be."""
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


def name_folder(task: Task, total: int) -> str:
    """The number and what can be read of the name: `007-report.txt`. Unique, and safe whatever the name is."""
    return f"{task.number:0{len(str(total))}d}-{_ODD.sub('_', Path(task.name).name)[:MAX_NAME] or 'input'}"


def check_result_name(name: str) -> None:
    """A relative path without `..`. A guest may answer with any text."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise _bad_name(name)


def write_results(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write new files below `folder`, each on the disk when this returns. Blocks. Raises `batch.bad-name`."""
    for name, content in files.items():
        check_result_name(name)
        try:
            _write_file(folder / name, content)
        except OSError as error:
            if error.errno in _ODD_NAMES:
                raise _bad_name(name) from None
            raise


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, _NEW_FILE, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _bad_name(name: str) -> FreeholdError:
    return FreeholdError("batch.bad-name", f"The computer named a result {name!a:.80}, which is refused")


def replace_folder(draft: Path, final: Path) -> None:
    """`final` is what `draft` is, completely; an earlier attempt is removed. Blocks."""
    if final.exists():
        shutil.rmtree(final)
    draft.rename(final)


def remove_folders(folders: Iterable[Path]) -> None:
    for one in folders:
        shutil.rmtree(one, ignore_errors=True)
