"""The address of a repository: a folder, `s3://BUCKET/FOLDER`, `sftp://USER@HOST/FOLDER`, or an archive file."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from freehold.backup.stores.contract import BackupStore
from freehold.errors import FreeholdError

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True)
class StorePlace:
    """Where a repository is, and what opens the store. `endpoint`, `region` and `user` are those of S3; `user` also of SFTP."""

    url: str
    endpoint: str | None = None
    region: str | None = None
    user: str | None = None
    secret: str | None = None
    known_hosts: str | None = None
    ssh_key: str | None = None


def open_store(place: StorePlace, *, create: bool = True) -> BackupStore:
    """Raises `backup.bad-address`, and whatever the store says. With `create` a missing folder is made."""
    url = place.url
    if url.startswith("s3://"):
        return _open_s3(place)
    if url.startswith("sftp://"):
        return _open_sftp(place)
    if "://" in url and not url.startswith("file://"):
        raise _bad_address(url, "it begins neither with s3:// nor sftp:// nor /")
    path = Path(unquote(urlsplit(url).path) if url.startswith("file://") else url).expanduser()
    if not path.is_absolute():
        raise _bad_address(url, "a folder is given by its whole path")
    if path.is_file():
        from freehold.backup.stores.archive import ArchiveStore

        return ArchiveStore(path)
    from freehold.backup.stores.folder import FolderStore

    return FolderStore(path, create=create)


def _open_s3(place: StorePlace) -> BackupStore:
    from freehold.backup.stores.aws_signature import AwsKey
    from freehold.backup.stores.s3 import S3Place, S3Store

    bucket, _, prefix = place.url.removeprefix("s3://").partition("/")
    if not bucket:
        raise _bad_address(place.url, "it names no bucket")
    if not place.user or not place.secret:
        raise FreeholdError(
            "backup.no-key",
            f"There is no key for {place.url}",
            hint="Set user and key in [backup]; on another machine set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    region = place.region or DEFAULT_REGION
    endpoint = place.endpoint or f"https://s3.{region}.amazonaws.com"
    return S3Store(S3Place(endpoint, bucket, prefix, AwsKey(place.user, place.secret, region)))


def _open_sftp(place: StorePlace) -> BackupStore:
    from freehold.backup.stores.sftp import SftpPlace, SftpStore

    parts = urlsplit(place.url)
    if not parts.hostname or parts.path in ("", "/") or parts.password is not None:
        raise _bad_address(place.url, "it is written sftp://USER@HOST/FOLDER, without a password")
    keys = (place.ssh_key,) if place.ssh_key else ()
    user = parts.username or place.user
    folder = unquote(parts.path)
    return SftpStore(SftpPlace(parts.hostname, parts.port or 22, user, folder, place.secret, place.known_hosts, keys))


def _bad_address(url: str, why: str) -> FreeholdError:
    return FreeholdError(
        "backup.bad-address",
        f"{url!r} is no place for a backup: {why}",
        hint='Examples: "/mnt/usb/freehold", "s3://bucket/freehold", "sftp://me@host/backups/freehold"',
    )
