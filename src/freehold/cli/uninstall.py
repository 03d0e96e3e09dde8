"""`freehold uninstall`."""

import os
from pathlib import Path

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.installed_version import find_installation

UNITS = (Path("/etc/systemd/system/freehold.service"), Path("~/.config/systemd/user/freehold.service"))
COMPOSED = ("versions", "images", "agents", "computers", "copies", "kept-homes", "mounts", "logs")
"""What is made again: other versions, images, agents, unpacked archives and logs."""


@click.command()
@click.option("--data", is_flag=True, help="Also remove your files, their history, your keys and everything else.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@home_option
def command(data: bool, yes: bool, home: Home) -> None:
    """Remove what Freehold has put on this machine. Your data is kept unless you say --data.

    Says what it removes, and asks. Freehold is stopped first. The program itself is removed by what installed it; the
    command for that is printed.

    \b
    Examples:
      freehold uninstall
      freehold uninstall --data
    """
    removed = [home.root] if data else [home.root / name for name in COMPOSED]
    removed = [path for path in (*removed, home.run, *_list_caches()) if path.exists()]
    _check(home)
    _check_service(home)
    for path in removed:
        click.echo(f"removes {path}")
    if not data and home.root.exists():
        click.echo(f"keeps   {home.root}: your files, their history, the vault, sessions and the manifest")
    if not yes:
        wanted = str(home.root) if data else "yes"
        question = f"Type {wanted} to remove this" + (", and all your files with it" if data else "")
        if click.prompt(question, default="", show_default=False) != wanted:
            raise FreeholdError("uninstall.cancelled", "Nothing was removed")
    _stop(home)
    installation = find_installation(home)
    _remove(removed)
    click.echo("Removed.")
    for line in _list_next_steps(installation):
        click.echo(line)


def _check(home: Home) -> None:
    """Refuse a folder that is not the home of a Freehold: with --data all of it would go."""
    if home.root.exists() and not (home.root / "vault").is_dir() and not home.manifest.exists():
        raise FreeholdError(
            "home.missing", f"{home.root} is not the home of a Freehold", hint="Name it with --home FOLDER"
        )


def _check_service(home: Home) -> None:
    """systemd starts a service again that ends, in the middle of what is removed."""
    from freehold.keeper.service_manager import is_run_by_systemd

    if is_run_by_systemd(home):
        raise FreeholdError(
            "uninstall.still-running",
            "Freehold runs as a service, and systemd would start it again",
            hint="Run: systemctl disable --now freehold, or with --user for a service of your own, then try again",
        )


def _list_caches() -> list[Path]:
    """Those of root are in /run: others who run Freehold as root use them, and the next boot removes them."""
    if os.geteuid() == 0:
        return []
    return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"]


def _stop(home: Home) -> None:
    from freehold.cli.down import command as down

    assert down.callback is not None
    down.callback(now=False, home=home)


def _remove(paths: list[Path]) -> None:
    from freehold.computer.library.removal import remove_tree

    for path in paths:
        try:
            remove_tree(path)
        except OSError as error:
            raise FreeholdError(
                "uninstall.failed",
                f"{path} cannot be removed: {error.strerror}",
                hint=f"Remove it yourself, perhaps as root: rm -r {path}",
            ) from error


def _list_next_steps(prefix: Path | None) -> list[str]:
    """The program itself, which is in `prefix`, and units, which others have installed."""
    steps = []
    if prefix is None:
        steps.append("The program itself: remove it with what installed it (apt, pipx, uv or pip)")
    elif prefix == Path("/usr/lib/freehold"):
        steps.append("The program itself and its service: apt remove freehold")
    elif "pipx" in prefix.parts:
        steps.append("The program itself: pipx uninstall freehold")
    elif "uv" in prefix.parts and "tools" in prefix.parts:
        steps.append("The program itself: uv tool uninstall freehold")
    else:
        steps.append(f"The program itself is in {prefix}: {prefix}/bin/python -m pip uninstall freehold")
    steps += [
        f"The service: systemctl disable --now freehold && rm {unit.expanduser()}"
        for unit in UNITS
        if unit.expanduser().exists()
    ]
    return steps
