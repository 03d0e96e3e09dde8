"""The tokens of `freehold login`, in the keyring of the system, or else in a file that only the user can read."""

import json
import os
import stat
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from freehold.client.address import read_address
from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder

if TYPE_CHECKING:
    from types import ModuleType

SERVICE = "freehold"
Where = Literal["keyring", "file"]


@dataclass(frozen=True)
class StoredToken:
    """An address with a token. `where` says where the token is."""

    url: str
    name: str
    where: Where


def tokens_file() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "freehold" / "logins.json"


def find_stored_token(url: str) -> str | None:
    """The token stored for this address, or None."""
    entry = _read().get(read_address(url))
    if entry is None:
        return None
    if entry["where"] == "file":
        return cast("str | None", entry.get("token"))
    ring = _keyring()
    return None if ring is None else cast("str | None", ring.get_password(SERVICE, read_address(url)))


def store_token(url: str, name: str, token: str) -> Where:
    """Store a token; replaces an earlier token for the same address. Returns where it is stored."""
    address = read_address(url)
    logins = _read()
    ring = _keyring()
    if ring is not None:
        ring.set_password(SERVICE, address, token)
        logins[address] = {"name": name, "where": "keyring"}
    else:
        logins[address] = {"name": name, "where": "file", "token": token}
    _write(logins)
    return "file" if ring is None else "keyring"


def list_stored_tokens() -> tuple[StoredToken, ...]:
    return tuple(StoredToken(url, entry["name"], entry["where"]) for url, entry in sorted(_read().items()))


def remove_stored_token(url: str) -> bool:
    """Remove the token for an address. Idempotent. Returns whether there was one."""
    address = read_address(url)
    logins = _read()
    entry = logins.pop(address, None)
    if entry is None:
        return False
    ring = _keyring()
    if entry["where"] == "keyring" and ring is not None and ring.get_password(SERVICE, address) is not None:
        ring.delete_password(SERVICE, address)
    _write(logins)
    return True


def _keyring() -> "ModuleType | None":
    """The keyring of the system; None when its package is not installed or it has no backend."""
    try:
        keyring, fail = import_module("keyring"), import_module("keyring.backends.fail")
    except ImportError:
        return None
    return None if isinstance(keyring.get_keyring(), fail.Keyring) else keyring


def _read() -> dict[str, dict[str, Any]]:
    path = tokens_file()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error.strerror or "it cannot be opened") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise _unusable(path, f"other users could have read it (mode {found.st_mode & 0o777:04o})")
        try:
            logins = json.loads(file.read())
        except ValueError:
            raise _unusable(path, "it is not valid JSON") from None
    if not isinstance(logins, dict) or not all(_is_entry(entry) for entry in logins.values()):
        raise _unusable(path, "it was not written by freehold login")
    return logins


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry.get("where") in ("keyring", "file")


def _write(logins: dict[str, dict[str, Any]]) -> None:
    path = tokens_file()
    ensure_private_folder(path.parent)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".logins")  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(logins, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _unusable(path: Path, why: str) -> FreeholdError:
    return FreeholdError(
        "client.stored-tokens",
        f"Cannot use the stored tokens in {path}: {why}",
        hint=f"Remove it (rm {path}) and sign in again: freehold login URL",
    )
