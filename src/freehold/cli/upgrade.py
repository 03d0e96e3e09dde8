"""`freehold upgrade`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold import __version__
from freehold.cli._home_files import read_manifest
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.upgrade.environment import VersionEnvironment


@click.command()
@click.option("--to", "version", metavar="VERSION", help="Another version than the newest.")
@click.option(
    "--from",
    "wheel",
    metavar="WHEEL",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file in the place of the package index.",
)
@click.option("--without-backup", is_flag=True, help="Do not make a backup first, although one is set up.")
@home_option
def command(version: str | None, wheel: Path | None, without_backup: bool, home: Home) -> None:
    """Install a new version, and go back if it does not get ready.

    A backup is made first, if backups are set up. Then Freehold stops, everything that it stores is copied, and the new
    version starts with your home. If it is not ready in time, the version before comes back by itself, with its data
    as it was. Your files are not touched.

    Whichever freehold you start afterwards, the new version runs this home.

    \b
    Examples:
      freehold upgrade
      freehold upgrade --to 0.2.0
      freehold upgrade --from freehold-0.2.0-py3-none-manylinux_2_17_x86_64.whl
    """
    from freehold.upgrade.environment import VersionEnvironment, download_wheel, make_environment
    from freehold.upgrade.trial import UpgradeTrial
    from freehold.upgrade.wheel import read_wheel

    require_home(home)
    _refuse_in_containers(home)
    trial = UpgradeTrial(home, _say)
    with trial.hold():
        found = read_wheel(wheel.absolute()) if wheel is not None else download_wheel(version, trial.folder)
        if version is not None and found.version != version:
            raise click.UsageError(f"{found.path} is version {found.version}, not {version}")
        if found.version == __version__ and wheel is None:
            click.echo(f"Version {__version__} runs already.")
            return
        _say(f"installing version {found.version}")
        environment = make_environment(found, trial.folder / found.name)
        changes = found.describe_changes(__version__)
        if changes:
            click.echo(f"\n{changes}\n")
        if not without_backup:
            _back_up(home, VersionEnvironment(Path(sys.executable)))
        trial.carry_out(environment, found.version)
    click.echo(f"Version {found.version} is ready.")


def _say(what: str) -> None:
    click.echo(f"{what} …", err=True)


def _back_up(home: Home, environment: "VersionEnvironment") -> None:
    if not read_manifest(home).model_dump()["backup"]["to"]:
        return
    _say("making a backup")
    done = environment.call("backup", "now", "--home", str(home.root))
    if done.returncode:
        raise FreeholdError(
            "upgrade.failed",
            f"The backup failed: {(done.stderr or done.stdout).strip()[:300]}",
            hint="freehold backup status, or upgrade with --without-backup. Nothing was changed",
        )


def _refuse_in_containers(home: Home) -> None:
    if read_manifest(home).computer.backend == "attached":
        raise FreeholdError(
            "upgrade.unsupported",
            "This Freehold runs in a container, which is upgraded by a new image",
            hint="freehold build lock --brain && freehold build --brain, then freehold deploy compose FOLDER",
        )
