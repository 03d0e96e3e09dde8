"""`freehold backup`."""

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from freehold.backup.status import BackupFailure, LastBackup, LastRehearsal, LastVerification
from freehold.cli._json_output import JsonOutput, echo_json, format_moment, json_option
from freehold.cli._options import home_option, require_home
from freehold.home import Home
from freehold.strict_json import EpochSeconds, IsoTime

if TYPE_CHECKING:
    from freehold.backup.recovery_state import RecoveryKeyState


@dataclass(frozen=True)
class ShownRecoveryKey:
    """`recipient` is the public half. `tried` is null until the owner has shown that they have the other half."""

    recipient: str
    made: IsoTime
    tried: IsoTime | None


@dataclass(frozen=True)
class BackupReport:
    """`trouble` says in words what is wrong. `pending` is when the first change was seen that is in no backup."""

    to: str
    recovery_key: ShownRecoveryKey | None
    last: LastBackup | None
    failure: BackupFailure | None
    pending: EpochSeconds | None
    verification: LastVerification | None
    rehearsal: LastRehearsal | None
    pruned: EpochSeconds | None
    stored: int | None
    trouble: str | None


@dataclass(frozen=True)
class RehearsalReport:
    problems: tuple[str, ...]


@click.group()
def command() -> None:
    """Make, list, verify and thin out backups.

    Backups are encrypted on this machine and kept where [backup] in freehold.toml says. While Freehold runs it makes
    them by itself. Begin with freehold backup key, which shows the key that opens them.

    \b
    Examples:
      freehold backup key
      freehold backup now
      freehold backup list
    """


@command.command()
@click.option("--take-over", is_flag=True, help="Write to a place that another Freehold wrote to before.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Go on although the place lost backups, or this home is older than the last one.",
)
@home_option
@json_option(JsonOutput("freehold.backup.run:BackupResult"))
def now(home: Home, take_over: bool, accept_loss: bool, as_json: bool) -> None:
    """Make a backup now.

    Freehold does not need to run. Nothing is stopped meanwhile.

    \b
    Example:
      freehold backup now
    """
    from freehold.backup.job import back_up

    require_home(home)
    result = back_up(home, take_over=take_over, accept_loss=accept_loss)
    if as_json:
        echo_json(result)
        return
    if not result.changed:
        click.echo(f"Nothing has changed since backup {result.number}.")
        return
    click.secho(f"Backup {result.number} is complete.", fg="green")
    click.echo(f"{result.files:,} files, {format_bytes(result.added)} stored in {result.seconds:.1f} s.")
    for note in result.notes:
        click.secho(f"Left out: {note}", fg="yellow")


@command.command()
@home_option
@json_option(JsonOutput(BackupReport))
def status(home: Home, as_json: bool) -> None:
    """Show the last backup, its verification, and what is wrong.

    Exits 1 when backups fail or were never made.

    \b
    Example:
      freehold backup status
    """
    from freehold.backup.job import read_section
    from freehold.backup.recovery_state import is_set_up, read_recovery_state
    from freehold.backup.status import describe_trouble, read_status

    require_home(home)
    section = read_section(home)
    found = read_status(home)
    trouble = describe_trouble(found, has_key=is_set_up(home), now=time.time()) if section.to else None
    if as_json:
        recovery = read_recovery_state(home)
        echo_json(
            BackupReport(
                section.to,
                _describe_key(recovery) if recovery else None,
                found.last,
                found.failure,
                found.pending,
                found.verification,
                found.rehearsal,
                found.pruned,
                found.stored,
                trouble[0] if trouble else None,
            )
        )
    elif not section.to:
        click.echo('Backups are off. Set a place in freehold.toml, under [backup]: to = "/mnt/backup/freehold"')
    else:
        click.echo(f"To      {section.to}")
        if found.last is not None:
            click.echo(f"Last    {format_time(found.last.at)}  backup {found.last.number}, {found.last.files:,} files")
        if found.verification is not None:
            checked = f"{found.verification.packs} of {found.verification.all_packs} packs read back"
            click.echo(f"Verified  {format_time(found.verification.at)}  {checked}")
        if found.rehearsal is not None:
            click.echo(f"Restored  {format_time(found.rehearsal.at)}  backup {found.rehearsal.number}, as a trial")
        if trouble is not None:
            click.secho(trouble[0], fg="red" if trouble[1] else "yellow")
    if not section.to or trouble is not None or found.last is None:
        sys.exit(1)


@command.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, the newest first."
)
@home_option
@json_option(JsonOutput("freehold.backup.snapshot:BackupSnapshot", "list"))
def list_backups(home: Home, limit: int, as_json: bool) -> None:
    """List the backups, the newest first.

    Exits 1 when one of them cannot be read.

    \b
    Example:
      freehold backup list --limit 100
    """
    from freehold.backup.job import open_repository

    require_home(home)
    with open_repository(home) as opened:
        numbers = sorted(opened.repository.list_meta().snapshots, reverse=True)[:limit]
        read = [opened.repository.find_snapshot(number) for number in numbers]
    found = [one for one, _ in read if one is not None]
    troubles = [trouble for _, trouble in read if trouble is not None]
    if as_json:
        echo_json(found)
    else:
        for one in found:
            size = f"{format_bytes(one.total)}, {format_bytes(one.added)} new"
            click.echo(f"{one.number:>6}  {format_time(one.at)}  {one.files:>9,} files  {size}  {one.host}")
        if not read:
            click.echo("There are no backups yet. Make one: freehold backup now")
    for trouble in troubles:
        click.secho(trouble.message, fg="red", err=True)
    if troubles:
        sys.exit(1)


@command.command()
@click.option("--all", "everything", is_flag=True, help="Read everything back, not a sample.")
@click.option("--restore", is_flag=True, help="Restore the newest backup into a scratch folder, and check it.")
@home_option
@json_option(JsonOutput("freehold.backup.verification:VerifyResult"), JsonOutput(RehearsalReport, when="--restore"))
def verify(home: Home, everything: bool, restore: bool, as_json: bool) -> None:
    """Read backups back and check them.

    Freehold does this by itself: a sample every day, a whole restore every month. What is damaged is stored again by the
    next backup, as far as it is still here. Exits 1 when something is wrong.

    \b
    Examples:
      freehold backup verify
      freehold backup verify --restore
    """
    from freehold.backup import job

    require_home(home)
    if restore:
        problems = job.rehearse(home)
        shown: object = RehearsalReport(tuple(problems))
        line = "The newest backup was restored into a scratch folder and checked."
    else:
        result = job.verify(home, everything=everything)
        problems = result.problems
        shown = result
        line = f"{result.packs} of {result.all_packs} packs read back, {format_bytes(result.bytes)}."
    if as_json:
        echo_json(shown)
    else:
        click.echo(line)
        for problem in problems:
            click.secho(problem, fg="red")
        if not problems:
            click.secho("No damage found.", fg="green")
    if problems:
        sys.exit(1)


@command.command()
@click.option("--damaged", is_flag=True, help="Remove backups that cannot be read, too. Else nothing is removed.")
@home_option
@json_option(JsonOutput("freehold.backup.prune:PruneResult"))
def prune(home: Home, damaged: bool, as_json: bool) -> None:
    """Remove backups that are kept no longer, and what only they need.

    hourly, daily and weekly in [backup] say which are kept. Freehold does this by itself once a day.

    \b
    Examples:
      freehold backup prune
      freehold backup prune --damaged
    """
    from freehold.backup import job

    require_home(home)
    result = job.prune(home, drop_damaged=damaged)
    if as_json:
        echo_json(result)
        return
    click.echo(f"{result.kept} kept, {result.forgotten} removed, {format_bytes(max(0, result.freed))} freed.")


@command.command()
@click.option("--new", "renew", is_flag=True, help="Make a new recovery key. The old one opens nothing any more.")
@click.option("--try", "trial", is_flag=True, help="Check that you have the recovery key.")
@click.option("--recipient", metavar="age1…", help="Use a key of your own: the public half, as age-keygen prints it.")
@home_option
@json_option(JsonOutput(ShownRecoveryKey))
def key(home: Home, renew: bool, trial: bool, recipient: str | None, as_json: bool) -> None:
    """Make the recovery key, show its state, replace or try it.

    Only this key opens the backups on another machine. It is shown once and not kept here: write it down, and keep it
    somewhere else than this machine.

    \b
    Examples:
      freehold backup key
      freehold backup key --try
    """
    from freehold.backup.age import AgeRecipient
    from freehold.backup.keys import KeyStore, parse_recovery_key
    from freehold.backup.recovery_key import make_recovery_key, try_recovery_key, use_recovery_key
    from freehold.backup.recovery_state import is_set_up, read_recovery_state

    require_home(home)
    state = read_recovery_state(home) if is_set_up(home) else None
    if recipient is not None:
        try:
            parsed = AgeRecipient.parse(recipient)
        except ValueError as error:
            raise click.BadParameter(f"{recipient!r} is no age recipient: {error}") from None
        state = use_recovery_key(home, parsed)
    elif trial:
        KeyStore(home).read()  # nobody is asked for a key that there is not
        state = try_recovery_key(home, parse_recovery_key(read_key("Recovery key")))
    elif renew or state is None:
        state = make_recovery_key(home, partial(_show_key, as_json=as_json))
    if as_json:
        echo_json(_describe_key(state))
        return
    click.echo(f"Recovery key  made {state.made}, {f'tried {state.tried}' if state.tried else 'never tried'}")
    click.echo(f"Public half   {state.recipient}")


def _describe_key(state: "RecoveryKeyState") -> ShownRecoveryKey:
    made, tried = (
        format_moment(datetime.fromisoformat(text).timestamp()) if text else None for text in (state.made, state.tried)
    )
    return ShownRecoveryKey(state.recipient, made or "", tried)


def _show_key(text: str, *, as_json: bool) -> str | None:
    """With `as_json` on stderr, so that stdout has nothing but the object."""
    words = "This is your recovery key. It is shown once. Without it nobody can open your backups, not even you:\n"
    click.echo(words, err=as_json)
    click.secho(f"  {text}\n", bold=True, err=as_json)
    if not sys.stdin.isatty():
        return None
    return read_key("Type or paste it to check that you have it", hidden=False)


def read_key(question: str, *, hidden: bool = True) -> str:
    """From the terminal, or from standard input."""
    if sys.stdin.isatty():
        return str(click.prompt(question, hide_input=hidden))
    return sys.stdin.readline(4096)


def format_bytes(size: int) -> str:
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
