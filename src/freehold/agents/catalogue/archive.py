"""Agents that come as a program, mostly in an archive: fetched from one address, checked by a hash, and unpacked. None of it runs here."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from freehold.agents.catalogue.install_command import Progress
from freehold.computer.mounts.unpacked import FolderWriter
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.tls_trust import trust_system

KIND = "archive:"
FOLDER = "archive"
"""In the folder of the agent."""
MAX_ARCHIVE = 1024**3
MAX_UNPACKED = 4 * 1024**3
MAX_ENTRIES = 100_000
MAX_REDIRECTS = 5
FETCH_TIMEOUT = 60.0
"""Seconds for each piece."""
_PINNED = re.compile(r"(https://[^#\s]+)#sha256=([0-9a-f]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_PROGRAM_STARTS = (b"\x7fELF", b"#!")
_REDIRECTS = (301, 302, 303, 307, 308)
_MEGABYTE = 10**6


def pin_archive(home: Home, package: str, progress: Progress) -> str:
    """`archive:ADDRESS` with the hash of what is there now. That is kept for the installation."""
    if "#" in package:
        return package
    url = package.removeprefix(KIND)
    return f"{KIND}{url}#sha256={_fetch(url, _cached(home, url), progress)}"


def install_archive_agent(home: Home, package: str, staging: Path, progress: Progress) -> str:
    """Unpacks `ADDRESS#sha256=HASH` into the staging folder. Returns the hash. Raises `agent.install-failed`."""
    found = _PINNED.fullmatch(package)
    if found is None:
        raise _failed(f"{package[:200]!a} is not an address with https and a hash")
    url, digest = found.groups()
    archive = _cached(home, url)
    if not archive.exists() or _hash_file(archive) != digest:
        fetched = _fetch(url, archive, progress)
        if fetched != digest:
            archive.unlink()
            raise _failed(f"{url} has another content than the one that is locked: its hash is {fetched}")
    progress("unpacking", 0, 0)
    folder = staging / FOLDER
    folder.mkdir()
    writer = _AgentWriter(folder, url)
    _unpack(archive, url, writer)
    _close_folder(folder, writer)
    return f"sha256:{digest}"


def _unpack(archive: Path, url: str, writer: "_AgentWriter") -> None:
    """What is no archive but a program has the name that its address ends with."""
    from freehold.computer.mounts.archive import unpack_into  # the gateway imports this module and installs nothing

    with archive.open("rb") as file:
        is_program = file.read(4).startswith(_PROGRAM_STARTS)
        file.seek(0)
        if is_program:
            name = urlsplit(url).path.rpartition("/")[2]
            if not _NAME.fullmatch(name):
                raise writer.refuse(f"it is a program, and {name[:200]!r} is no name for one")
            writer.add_file(name, file.read, True)
            return
    unpack_into(archive, writer)


class _AgentWriter(FolderWriter):
    """What begins as a program does can be started, whatever the archive says."""

    def __init__(self, root: Path, source: str) -> None:
        super().__init__(root, source)
        self._entries = 0
        self._size = 0

    def place(self, name: str) -> Path:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise self.refuse(f"it has more than {MAX_ENTRIES} entries")
        return super().place(name)

    def add_file(self, name: str, read: Callable[[int], bytes], executable: bool) -> None:
        begin = read(4)
        pending = [begin]

        def read_all(size: int) -> bytes:
            data = pending.pop() if pending else read(size)
            self._size += len(data)
            if self._size > MAX_UNPACKED:
                raise self.refuse(f"it is larger than {MAX_UNPACKED // 1024**3} GiB")
            return data

        super().add_file(name, read_all, executable or begin.startswith(_PROGRAM_STARTS))

    def refuse(self, why: str) -> FreeholdError:
        return _failed(f"{self._source}: {why}")


def _cached(home: Home, url: str) -> Path:
    """Where it is until the agent is installed."""
    return home.agents / ".cache" / "archives" / hashlib.sha256(url.encode()).hexdigest()[:32]


def _fetch(url: str, place: Path, progress: Progress) -> str:
    """The hash of what was put to `place`: all of it or nothing."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            digest = _download(url, file.write, progress)
        Path(draft).replace(place)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return digest


def _download(url: str, write: Callable[[bytes], object], progress: Progress) -> str:
    """Follows redirects, as those of releases, to addresses with TLS only."""
    import httpx2

    digest, size = hashlib.sha256(), 0
    try:
        with httpx2.Client(verify=trust_system(), timeout=FETCH_TIMEOUT) as client:
            for _ in range(MAX_REDIRECTS + 1):
                if not url.startswith("https://"):
                    raise _failed(f"it leads to {url[:200]!a}, which has no TLS")
                with client.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
                    if response.status_code in _REDIRECTS:
                        url = str(response.url.join(response.headers.get("location", "")))
                        continue
                    if response.status_code != 200:
                        raise _failed(f"{url[:200]} answered {response.status_code}")
                    for piece in response.iter_raw():
                        size += len(piece)
                        if size > MAX_ARCHIVE:
                            raise _failed(f"it is larger than {MAX_ARCHIVE // 1024**3} GiB")
                        digest.update(piece)
                        write(piece)
                        progress(f"fetching, {size // _MEGABYTE} MB", 0, 0)
                    return digest.hexdigest()
    except httpx2.HTTPError as error:
        raise _failed(f"{url[:200]} cannot be fetched: {str(error)[:300] or type(error).__name__}") from error
    raise _failed(f"it was led on more than {MAX_REDIRECTS} times")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _close_folder(root: Path, writer: _AgentWriter) -> None:
    """No link leads out, also not by way of another one. The uid of the computer reads all, whatever the umask here is."""
    real = os.path.realpath(root)
    for folder, folders, names in os.walk(root):
        Path(folder).chmod(0o755)
        for path in (Path(folder) / name for name in (*folders, *names)):
            if path.is_symlink():
                if os.path.commonpath((real, os.path.realpath(path))) != real:
                    raise writer.refuse(f"the link {str(path.relative_to(root))[:200]!r} leads out of it")
            elif path.is_file():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _failed(why: str) -> FreeholdError:
    return FreeholdError(
        "agent.install-failed",
        f"The archive of the agent cannot be installed: {why}",
        hint="Check its address and hash",
    )
