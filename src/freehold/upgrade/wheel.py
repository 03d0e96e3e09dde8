"""The wheel of a version: what it says about itself."""

import email
import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError

CHANGELOG = "freehold/CHANGELOG.md"
_HEAD = re.compile(r"^## +\[?([^\]\s]+)", re.MULTILINE)
_VERSION = re.compile(r"\d+(\.\d+)*([a-z]+\d*)?([.+-][0-9A-Za-z.]+)?")
MAX_TEXT = 4 << 20


@dataclass(frozen=True)
class ReleaseWheel:
    """`digest` is the SHA-256 of the file."""

    path: Path
    version: str
    digest: str
    changelog: str

    @property
    def name(self) -> str:
        """The folder of its environment. The same version may be built twice with other content."""
        return f"{self.version}-{self.digest[:8]}"

    def describe_changes(self, since: str) -> str:
        """The part of its changelog above the heading of the version `since`. Empty when that is a later version."""
        heads = list(_HEAD.finditer(self.changelog))
        begin = heads[0].start() if heads else 0
        end = next((one.start() for one in heads if one[1] == since), begin)
        return self.changelog[begin:end].strip()


def read_wheel(path: Path) -> ReleaseWheel:
    """Raises `upgrade.bad-file` if it is not a wheel of Freehold."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with zipfile.ZipFile(path) as archive:
            (name,) = [one for one in archive.namelist() if re.fullmatch(r"freehold-[^/]+\.dist-info/METADATA", one)]
            version = email.message_from_bytes(_read(archive, name))["Version"] or ""
            changelog = _read(archive, CHANGELOG).decode(errors="replace") if CHANGELOG in archive.namelist() else ""
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise FreeholdError(
            "upgrade.bad-file", f"{path} is not a wheel of Freehold: {error}", hint="make dist builds one"
        ) from error
    if not _VERSION.fullmatch(version):
        raise FreeholdError("upgrade.bad-file", f"{path} has no usable version: {version[:40]!r}")
    return ReleaseWheel(path, version, digest, changelog)


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(MAX_TEXT)
