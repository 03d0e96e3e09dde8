"""`freehold restore-from`, `freehold export` and `freehold import`."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.backup.cli import format_bytes, format_time, read_key
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.backup.place import StorePlace


@dataclass(frozen=True)
class RestoredFreehold:
    """`agents` are those that were installed there. They are not in a backup: install them again.

    `too_long` paths could not be written: they are longer than a path can be.
    """

    number: int
    files: int
    bytes: int
    too_long: int
    folder: str
    agents: tuple[str, ...]


@dataclass(frozen=True)
class ExportedFreehold:
    """`recovery_key` is set when a key was made for this file. It is shown only here."""

    number: int
    changed: bool
    files: int
    read: int
    added: int
    seconds: float
    state: str
    notes: tuple[str, ...]
    recovery_key: str | None


_key_file = click.option(
    "--key-file", type=click.Path(path_type=Path), help="A file with the recovery key. Else you are asked for it."
)
_into = click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The folder, which must be empty. [default: the home]",
)


@click.command()
@click.argument("url")
@click.option("--at", metavar="TIME", help="The newest backup that is not later, such as 2026-01-31T18:00.")
@click.option("--number", type=click.IntRange(1), help="The backup with this number.")
@click.option("--endpoint", metavar="URL", help="The address of the S3 service.")
@click.option("--region", help="The region of the S3 service.")
@click.option("--ssh-key", metavar="FILE", help="The private key for SFTP.")
@_into
@_key_file
@home_option
@json_option(JsonOutput(RestoredFreehold))
def restore_from(
    url: str,
    at: str | None,
    number: int | None,
    endpoint: str | None,
    region: str | None,
    ssh_key: str | None,
    into: Path | None,
    key_file: Path | None,
    home: Home,
    as_json: bool,
) -> None:
    """Restore a whole Freehold from its backups.

    URL is what `to` in [backup] was: a folder, s3://BUCKET/FOLDER or sftp://USER@HOST/FOLDER. You need the recovery key.
    For S3 set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. For SFTP with a password set SFTP_PASSWORD.

    \b
    Examples:
      freehold restore-from /mnt/usb/freehold
      freehold restore-from s3://my-backups/freehold --endpoint https://s3.example.com --into ~/freehold-restored
    """
    from freehold.backup.place import StorePlace

    address = url if "://" in url else str(Path(url).expanduser().absolute())
    user, secret = _find_sign_in(url, os.environ)
    place = StorePlace(address, endpoint, region, user, secret, ssh_key=ssh_key)
    _restore(place, key_file, into or home.root, _parse_time(at), number, as_json=as_json)


def _find_sign_in(url: str, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """User and secret. Those of one service are never sent to another: an SFTP server gets the user of its address."""
    if url.startswith("s3://"):
        return environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if url.startswith("sftp://"):
        return None, environment.get("SFTP_PASSWORD")
    return None, None


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_into
@_key_file
@home_option
@json_option(JsonOutput(RestoredFreehold))
def import_archive(file: Path, into: Path | None, key_file: Path | None, home: Home, as_json: bool) -> None:
    """Restore a whole Freehold from a file of freehold export.

    \b
    Example:
      freehold import /media/usb/freehold.tar --into ~/freehold
    """
    from freehold.backup.place import StorePlace

    if not file.is_file():
        raise FreeholdError("backup.missing", f"There is no file {file}", hint="Check the path")
    _restore(StorePlace(str(file.absolute())), key_file, into or home.root, None, None, as_json=as_json)


def _restore(
    place: "StorePlace", key_file: Path | None, folder: Path, at: float | None, number: int | None, *, as_json: bool
) -> None:
    from freehold.backup.keys import parse_recovery_key
    from freehold.backup.place import open_store
    from freehold.backup.repository import open_with_recovery_key
    from freehold.backup.restore import OTHER_MANIFEST, HomeRestore, choose_snapshot
    from freehold.timeline import Timeline

    with contextlib.closing(open_store(place, create=False)) as store:
        recovery = parse_recovery_key(_read_key(key_file))
        repository = open_with_recovery_key(store, recovery)
        snapshot = choose_snapshot(repository, at, number)
        is_newest = snapshot.number == max(repository.list_meta().snapshots)
        if not as_json:
            click.echo(f"Backup {snapshot.number} of {format_time(snapshot.at)}, from {snapshot.host}:{snapshot.home}")
        try:
            result = HomeRestore(repository, snapshot, folder.absolute()).run()
        except (OSError, sqlite3.Error) as error:
            raise FreeholdError(
                "backup.disk-error",
                f"{folder} cannot be written: {error}",
                hint=f"Free some space, or choose another folder with --into. Then again: it begins anew (df -h {folder})",
            ) from error
    if (folder / "timeline.db").exists():
        with Timeline(folder / "timeline.db") as timeline:
            timeline.append("backup.restored", {"number": snapshot.number, "from": place.url}, who="owner")
    if as_json:
        echo_json(RestoredFreehold(**vars(result), folder=str(folder), agents=snapshot.agents))
        return
    click.secho(f"Restored {result.files:,} files, {format_bytes(result.bytes)}, into {folder}", fg="green")
    if result.too_long:
        click.secho(
            f"Left out: {result.too_long:,} paths that are longer than 4,095 bytes. History has them.", fg="yellow"
        )
    if (folder / os.fsdecode(OTHER_MANIFEST)).exists():
        click.echo(f"Kept freehold.toml as it is here. That of the backup is {folder / os.fsdecode(OTHER_MANIFEST)}")
    if snapshot.agents:
        click.echo(f"Install the agents again: freehold agents add {' '.join(snapshot.agents)} --home {folder}")
    click.echo(f"Start it: freehold up --home {folder}")
    options = "--take-over" if is_newest else "--take-over --accept-loss"
    click.echo(
        f"When the old one is stopped for good, let backups go on: freehold backup now {options} --home {folder}"
    )


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@home_option
@json_option(JsonOutput(ExportedFreehold))
def export(file: Path, home: Home, as_json: bool) -> None:
    """Write this whole Freehold into one encrypted file.

    The file opens with the recovery key of the backups. When there is none, a key is made for this file and shown. Freehold
    does not need to be stopped.

    \b
    Example:
      freehold export /media/usb/freehold.tar
    """
    from freehold.backup.age import AgeIdentity, AgeRecipient
    from freehold.backup.job import lock_job, take_snapshot
    from freehold.backup.keys import RepositoryKey
    from freehold.backup.local_index import LocalIndex
    from freehold.backup.recovery_state import read_recovery_state
    from freehold.backup.repository import BackupRepository, set_up_store
    from freehold.backup.run import BackupRun
    from freehold.backup.stores.archive import ArchiveStore

    require_home(home)
    state = read_recovery_state(home)
    made = AgeIdentity.generate() if state is None else None
    recipient = AgeRecipient.parse(state.recipient) if state is not None else made.recipient if made else None
    assert recipient is not None
    key = RepositoryKey.generate()
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_job(home))
        draft = file.with_name(f".{file.name}.draft")
        draft.unlink(missing_ok=True)
        if file.exists():
            raise FreeholdError("backup.exists", f"{file} exists already", hint="Choose another name")
        store = stack.enter_context(contextlib.closing(ArchiveStore(draft, write=True)))
        stack.callback(draft.unlink, missing_ok=True)
        set_up_store(store, key, recipient)
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=home.root / "backup"))
        index = stack.enter_context(contextlib.closing(LocalIndex(Path(folder), "export")))
        result = BackupRun(home, BackupRepository(store, key), index, lambda: take_snapshot(home)).run()
        store.close()
        draft.rename(file)
    if as_json:
        echo_json(ExportedFreehold(**vars(result), recovery_key=made.reveal() if made else None))
        return
    click.secho(f"Wrote {result.files:,} files, {format_bytes(file.stat().st_size)}, to {file}", fg="green")
    if made is None:
        click.echo("It opens with your recovery key: freehold import FILE")
    else:
        click.echo("It opens with this key, which is shown once:\n")
        click.secho(f"  {made.reveal()}\n", bold=True)


def _read_key(key_file: Path | None) -> str:
    if key_file is not None:
        try:
            lines = key_file.read_text().splitlines()
        except (OSError, ValueError) as error:
            raise FreeholdError("backup.bad-key", f"{key_file} cannot be read: {error}") from error
        return next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return os.environ.get("FREEHOLD_RECOVERY_KEY") or read_key("Recovery key")


def _parse_time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time; write it like 2026-01-31T18:00") from None
