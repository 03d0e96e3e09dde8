"""The two keys of a repository.

The *repository key* encrypts everything and names every object. It is in the vault, and in the repository in `key.age`.
The *recovery key* opens `key.age`. The owner has it; this machine knows only its public half.
"""

import hashlib
import hmac

from freehold.backup.age import AgeIdentity, AgeRecipient, CannotDecrypt, decrypt, encrypt
from freehold.backup.recovery_state import KEY_FILE, is_set_up
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.private_file import make_private_file, read_private_file

_NAMES = b"freehold backup 1 names"
_SEALS = b"freehold backup 1 seals"


class RepositoryKey:
    """Encrypts, names and seals the objects of one repository."""

    def __init__(self, identity: AgeIdentity) -> None:
        self.identity = identity
        secret = identity.reveal().encode()
        self._names = hmac.digest(secret, _NAMES, "sha256")
        self._seals = hmac.digest(secret, _SEALS, "sha256")

    @classmethod
    def generate(cls) -> "RepositoryKey":
        return cls(AgeIdentity.generate())

    def name(self, kind: str, data: bytes) -> str:
        """The name of an object with this content. Without the key nobody can tell which content has which name."""
        return hmac.digest(self._names, kind.encode() + b"\n" + hashlib.sha256(data).digest(), "sha256").hex()[:40]

    def encrypt(self, data: bytes) -> bytes:
        return encrypt(data, [self.identity.recipient])

    def decrypt(self, data: bytes) -> bytes:
        """Raises CannotDecrypt."""
        return decrypt(data, self.identity)

    def seal(self, name: str, text: bytes) -> bytes:
        """Encrypted, and bound to the name of its object: a store cannot show it under another one."""
        return self.encrypt(self._digest(name, text) + b"\n" + text)

    def unseal(self, name: str, data: bytes) -> bytes:
        """Raises CannotDecrypt."""
        digest, _, text = self.decrypt(data).partition(b"\n")
        if not hmac.compare_digest(digest, self._digest(name, text)):
            raise CannotDecrypt("it was not written by this Freehold")
        return text

    def _digest(self, name: str, text: bytes) -> bytes:
        return hmac.digest(self._seals, name.encode() + b"\n" + text, "sha256").hex().encode()


def wrap_key(key: RepositoryKey, recovery: AgeRecipient) -> bytes:
    """The bytes of `key.age`."""
    return encrypt(f"{key.identity.reveal()}\n".encode(), [recovery])


def unwrap_key(wrapped: bytes, recovery: AgeIdentity) -> RepositoryKey:
    """Raises `backup.bad-key`."""
    try:
        return RepositoryKey(AgeIdentity.parse(decrypt(wrapped, recovery).decode("ascii")))
    except (CannotDecrypt, ValueError) as error:
        raise FreeholdError(
            "backup.bad-key",
            f"This recovery key does not open the backup: {error}",
            hint="Use the key that was shown when the backup was set up, or when it was replaced last",
        ) from error


def parse_recovery_key(text: str) -> AgeIdentity:
    """Raises `backup.bad-key`."""
    try:
        return AgeIdentity.parse(text)
    except ValueError as error:
        raise FreeholdError(
            "backup.bad-key",
            f"This is no recovery key: {error}",
            hint="It begins with AGE-SECRET-KEY-1 and has 74 characters",
        ) from error


class KeyStore:
    """The repository key of a home. Backups are set up when there is a recovery key too; see `recovery_state`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._key = home.vault / KEY_FILE

    def read(self) -> RepositoryKey:
        """Raises `backup.no-recovery-key` before the set-up."""
        if not is_set_up(self._home):
            raise FreeholdError(
                "backup.no-recovery-key",
                "Backups are not set up: there is no recovery key yet",
                hint="Make one: freehold backup key",
                kind="conflict",
            )
        return self._read_key()

    def _read_key(self) -> RepositoryKey:
        text = read_private_file(self._key, code="backup.key", remedy=f"Run: chmod 600 {self._key}").decode("ascii")
        return RepositoryKey(AgeIdentity.parse(text))

    def make(self) -> RepositoryKey:
        """The key of this home, made when there is none."""
        if not self._key.exists():
            make_private_file(self._key, f"{AgeIdentity.generate().reveal()}\n".encode())
        return self._read_key()
