"""Tokens that `freehold login` has got, kept in the OS keyring where there is one, else in a file that only you can read."""

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
class Stored:
    """One address with a token. The token itself is where `where` says."""

    url: str
    name: str
    where: Where


def credentials_file() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "freehold" / "logins.json"


def find_credentials(url: str) -> str | None:
    """The token stored for this address, or None."""
    entry = _read().get(read_address(url))
    if entry is None:
        return None
    if entry["where"] == "file":
        return cast("str | None", entry.get("token"))
    ring = _keyring()
    return None if ring is None else cast("str | None", ring.get_password(SERVICE, read_address(url)))


def store_credentials(url: str, name: str, token: str) -> Where:
    """Keep a token; one that was kept for the same address is replaced. Says where it is now."""
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


def list_credentials() -> tuple[Stored, ...]:
    return tuple(Stored(url, entry["name"], entry["where"]) for url, entry in sorted(_read().items()))


def forget_credentials(url: str) -> bool:
    """Remove what is stored for an address. Idempotent; says whether there was something."""
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
    """The OS keyring, when its package is installed and it has a place to keep things."""
    try:
        keyring, fail = import_module("keyring"), import_module("keyring.backends.fail")
    except ImportError:
        return None
    return None if isinstance(keyring.get_keyring(), fail.Keyring) else keyring


def _read() -> dict[str, dict[str, Any]]:
    path = credentials_file()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error.strerror or "it cannot be opened") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise _unusable(path, f"others could have read it (mode {found.st_mode & 0o777:04o})")
        try:
            logins = json.loads(file.read())
        except ValueError:
            raise _unusable(path, "it is not JSON") from None
    if not isinstance(logins, dict) or not all(_is_entry(entry) for entry in logins.values()):
        raise _unusable(path, "it does not hold what freehold login writes")
    return logins


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry.get("where") in ("keyring", "file")


def _write(logins: dict[str, dict[str, Any]]) -> None:
    path = credentials_file()
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
        f"{path} cannot be trusted with tokens: {why}",
        hint=f"Remove it (rm {path}) and sign in again: freehold login URL",
    )
