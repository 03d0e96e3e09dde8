"""The key with which this Freehold proves that it is itself to the owner's authorization server."""

import os
import secrets
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder


def client_key_path(home: Home) -> Path:
    return home.vault / "sign-in-key.pem"


def ensure_keys(home: Home) -> None:
    """Make what is missing (an ES256 key, mode 0600). Idempotent, and safe when two processes start at once."""
    path = client_key_path(home)
    ensure_private_folder(home.vault)
    if path.exists():
        read_client_key(home)
        return
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # never replaces a key that another process has just made and may already use
        except FileExistsError:
            read_client_key(home)
    finally:
        draft.unlink()


def read_client_key(home: Home) -> bytes:
    """The key as PEM; refuses one that others could have read or written."""
    path = client_key_path(home)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise FreeholdError(
            "identity.key",
            f"{path} cannot be read: {error.strerror}",
            hint="freehold up makes the key when it is missing",
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise FreeholdError(
                "identity.key-exposed",
                f"{path} can be read by others (mode {found.st_mode & 0o777:04o})",
                hint=f"Remove it (rm {path}) and run freehold up: a new one is made",
            )
        return file.read(10_000)
