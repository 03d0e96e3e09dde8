"""The two SSH keys in the vault: the key of the certificate authority, and the host key.

The server reads the host key and the public key of the authority. Only the issuer reads its private key.
"""

import argparse
import base64
import hashlib
import secrets
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder, find_home
from freehold.private_file import make_private_file, read_private_file


def keys_folder(home: Home) -> Path:
    return home.vault / "ssh"


def authority_path(home: Home) -> Path:
    return keys_folder(home) / "authority"


def host_key_path(home: Home) -> Path:
    return keys_folder(home) / "host"


def keys_exist(home: Home) -> bool:
    """Whether all keys exist. Does not import cryptography, so that the keeper can call it."""
    return all(
        path.exists() for key in (authority_path(home), host_key_path(home)) for path in (key, _public_path(key))
    )


def ensure_keys(home: Home) -> None:
    """Create missing keys (Ed25519, mode 0600). Idempotent, and safe when two processes start at once."""
    ensure_private_folder(home.vault)
    ensure_private_folder(keys_folder(home))
    for path, comment in ((authority_path(home), "freehold authority"), (host_key_path(home), "freehold host")):
        if not path.exists():
            _make_key(path)
        line = _public_line(read_private(path)) + f" {comment}\n"
        public = _public_path(path)
        if not public.exists() or public.read_text() != line:
            draft = public.with_name(f".{public.name}.{secrets.token_hex(4)}")
            draft.write_text(line)
            draft.replace(public)


def read_private(path: Path) -> bytes:
    """A private key in the format of OpenSSH. Raises FreeholdError when other users could have read or written it."""
    return read_private_file(
        path, code="ssh.key", remedy=f"Remove it (rm {path} {path}.pub) and run freehold up, which creates a new key"
    )


def read_public(path: Path) -> str:
    """The public key as `type base64`."""
    try:
        return " ".join(_public_path(path).read_text().split()[:2])
    except OSError as error:
        raise FreeholdError(
            "ssh.key",
            f"Cannot read {_public_path(path)}: {error.strerror}",
            hint="freehold up creates missing keys",
        ) from error


def fingerprint(public_line: str) -> str:
    """The fingerprint as `ssh-keygen -l` shows it: SHA256:…"""
    digest = hashlib.sha256(base64.b64decode(public_line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _public_path(path: Path) -> Path:
    return path.with_name(path.name + ".pub")


def _make_key(path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    make_private_file(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


def _public_line(private: bytes) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

    public = load_ssh_private_key(private, None).public_key()
    return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.ssh.keys")
    parser.add_argument("--home", required=True)
    ensure_keys(find_home(parser.parse_args().home))


if __name__ == "__main__":
    main()
