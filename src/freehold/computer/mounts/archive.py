"""A tar or zip archive as a folder."""

import stat
import tarfile
import zipfile
from pathlib import Path

from freehold.computer.mounts.unpacked import MAX_LINK, FolderWriter, UnpackedFolders
from freehold.errors import FreeholdError


def unpack_archive(archive: Path, folders: UnpackedFolders) -> Path:
    """The folder with the archive's files. One that has not changed is unpacked once.

    Raises `computer.mount-missing`, and `computer.mount-refused` for an archive that is broken or whose names lead out of it.
    """
    try:
        found = archive.stat()
    except OSError as error:
        raise FreeholdError("computer.mount-missing", f"There is no archive {archive}: {error.strerror}") from None
    identity = f"archive:{archive}:{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"
    return folders.provide(identity, str(archive), lambda writer: _unpack(archive, writer))


def _unpack(archive: Path, writer: FolderWriter) -> None:
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, writer)
        else:
            with tarfile.open(archive) as tar:
                unpack_tar(tar, writer)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise writer.refuse(f"it is not a readable tar or zip archive ({error})") from error


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
