"""A tar or zip archive as a folder."""

import stat
import tarfile
import zipfile
from pathlib import Path

from freehold.computer.mounts.unpacked import MAX_LINK, FolderWriter, UnpackedFolders
from freehold.errors import FreeholdError

ZIP_START = b"PK\3\4"


def unpack_archive(archive: Path, folders: UnpackedFolders) -> Path:
    """The folder with the archive's files. One that has not changed is unpacked once.

    Raises `computer.mount-missing`, and `computer.mount-refused` for an archive that is broken or whose names lead out of it.
    """
    try:
        found = archive.stat()
    except OSError as error:
        raise FreeholdError("computer.mount-missing", f"There is no archive {archive}: {error.strerror}") from None
    identity = f"archive:{archive}:{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"
    return folders.provide(identity, str(archive), lambda writer: unpack_into(archive, writer))


def unpack_into(archive: Path, writer: FolderWriter) -> None:
    """Raises what `writer` refuses with, also for an archive that cannot be read."""
    try:
        if _is_zip(archive):
            _unpack_zip(archive, writer)
        else:
            with tarfile.open(archive) as tar:
                unpack_tar(tar, writer)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise writer.refuse(f"it is not a readable tar or zip archive ({error})") from error


def _is_zip(archive: Path) -> bool:
    """A tar whose last member is a zip ends like one, and a zip may begin with a program that unpacks it."""
    with archive.open("rb") as file:
        if file.read(len(ZIP_START)) == ZIP_START:
            return True
    return not tarfile.is_tarfile(archive) and zipfile.is_zipfile(archive)


def _unpack_zip(archive: Path, writer: FolderWriter) -> None:
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            mode = entry.external_attr >> 16
            if entry.is_dir():
                writer.add_folder(entry.filename)
            elif stat.S_ISLNK(mode):
                with packed.open(entry) as file:
                    writer.add_link(entry.filename, file.read(MAX_LINK + 1).decode(errors="replace"))
            else:
                with packed.open(entry) as file:
                    writer.add_file(entry.filename, file.read, bool(mode & 0o100))


def unpack_tar(tar: tarfile.TarFile, writer: FolderWriter) -> None:
    """Devices and other special files are refused; owners and special bits are not kept."""
    for member in tar:
        if member.isdir():
            writer.add_folder(member.name)
        elif member.issym():
            writer.add_link(member.name, member.linkname)
        elif member.isreg() or member.islnk():
            file = tar.extractfile(member)  # for a hard link this is the file that it names
            if file is None:
                raise writer.refuse(f"{member.name[:200]!r} links to nothing")
            with file:
                writer.add_file(member.name, file.read, bool(member.mode & 0o100))
        else:
            raise writer.refuse(f"{member.name[:200]!r} is a special file")
