"""The private key with which this Freehold authenticates to the owner's authorization server."""

from pathlib import Path

from freehold.home import Home, ensure_private_folder
from freehold.private_file import make_private_file, read_private_file


def client_key_path(home: Home) -> Path:
    return home.vault / "sign-in-key.pem"


def ensure_client_key(home: Home) -> None:
    """Create the key (ES256, mode 0600) unless it exists. Idempotent, and safe when two processes start at once."""
    path = client_key_path(home)
    ensure_private_folder(home.vault)
    if path.exists():
        read_client_key(home)
        return
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    make_private_file(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    read_client_key(home)


def read_client_key(home: Home) -> bytes:
    """The key as PEM. Raises FreeholdError when other users could have read or written the file."""
    path = client_key_path(home)
    return read_private_file(
        path, code="identity.key", remedy=f"Remove it (rm {path}) and run freehold up, which creates a new key"
    )
