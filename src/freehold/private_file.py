"""A small file that only this user may read, such as a key. It is created once, completely or not at all."""

import os
import secrets
from pathlib import Path

from freehold.errors import FreeholdError

_MAX_BYTES = 10_000


def make_private_file(path: Path, content: bytes) -> None:
    """Create it with mode 0600 unless it exists. Safe when two processes do so at once, and when one is killed."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # never replaces a file that another process has just created and may use
        except FileExistsError:
            return
    finally:
        draft.unlink()


def replace_private_file(path: Path, content: bytes) -> None:
    """Write it with mode 0600, completely or not at all, whether it exists or not."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)  # the disk may be full, and the next try makes another one
        raise


def read_private_file(path: Path, *, code: str, remedy: str) -> bytes:
    """Its content. Raises the error `CODE-exposed`, with `remedy` as the hint, when other users can read or write it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise FreeholdError(
            code, f"{path} cannot be read: {error.strerror}", hint="freehold up creates it when it is missing"
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise FreeholdError(
                f"{code}-exposed",
                f"{path} can be read by other users (mode {found.st_mode & 0o777:04o})",
                hint=remedy,
            )
        return file.read(_MAX_BYTES)
