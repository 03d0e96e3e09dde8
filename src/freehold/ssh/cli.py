"""`freehold ssh`."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.ssh.issuers import LocalIssuer, RemoteIssuer

_TAKE_A_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""Of ssh's own options, those whose value may be the next word."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SSH-OPTION…] [COMMAND…]")
@click.option("--to", "url", metavar="URL", help="A Freehold elsewhere; needs freehold login URL --scope admin.")
@click.option("--name", default="freehold", show_default=True, metavar="HOST", help="Its name in ssh's configuration.")
@click.option("--config", "show_config", is_flag=True, help="Print what to paste into ~/.ssh/config.")
@click.option("--install", is_flag=True, help="Include it from ~/.ssh/config, so that plain ssh, scp, git work.")
@click.option("--renew", is_flag=True, help="Only make sure that the certificate holds, and say nothing.")
@click.option("--fresh", is_flag=True, help="Get a new certificate although the old one still holds.")
@click.option("--hours", type=click.FloatRange(0.01, 24), help="Let the certificate end sooner.")
@click.option("--list", "show_list", is_flag=True, help="Show the keys that were given out here.")
@click.option("--revoke", metavar="ID|all", help="End a key and its live connections.")
@home_option
@json_option
def command(
    words: tuple[str, ...],
    url: str | None,
    name: str,
    show_config: bool,
    install: bool,
    renew: bool,
    fresh: bool,
    hours: float | None,
    show_list: bool,
    revoke: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Log in to the computer, or run a command there.

    A key is made on this machine and certified for a day at most; it is renewed by itself. Options of ssh's own may
    come before the command.

    \b
    Examples:
      freehold ssh
      freehold ssh git -C /workspace status
      freehold ssh -L 5173:localhost:5173
      freehold ssh --install && rsync -a notes/ freehold:notes/
      freehold ssh --to https://agent.example.com uptime
    """
    from freehold.ssh.issuers import LocalIssuer, RemoteIssuer
    from freehold.ssh.wallet import Wallet, check_host, freehold_command

    issuer = RemoteIssuer(url) if url is not None else LocalIssuer(home)
    if show_list or revoke is not None:
        _keys(issuer, revoke, as_json)
        return
    wallet = Wallet(issuer, check_host(name))
    wallet.renew(seconds=None if hours is None else int(hours * 3600), force=fresh or hours is not None)
    place = ["--to", url] if url is not None else ["--home", str(home.root)]
    renewal = [*freehold_command(), "ssh", *place, "--name", name, "--renew"]
    if renew:
        return
    if show_config:
        click.echo(wallet.pasted(renewal), nl=False)
        return
    if install:
        changed = wallet.install(renewal, Path.home() / ".ssh" / "config")
        click.echo(f"{'Added to' if changed else 'Already in'} ~/.ssh/config; try: ssh {name}")
        return
    if isinstance(issuer, LocalIssuer):
        issuer.require_running()
    argv = wallet.command(*_split(words))
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - ssh itself, from here on
    except FileNotFoundError:
        raise FreeholdError(
            "ssh.no-client",
            "There is no ssh on this machine",
            hint="Install OpenSSH's client: apt install openssh-client",
        ) from None


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Ssh's own options in front, then the command."""
    options, rest = list[str](), list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        options.append(option)
        if option[-1] in _TAKE_A_VALUE and not any(letter in _TAKE_A_VALUE for letter in option[1:-1]) and rest:
            options.append(rest.pop(0))
    return options, rest


def _keys(issuer: "LocalIssuer | RemoteIssuer", revoke: str | None, as_json: bool) -> None:
    from freehold.ssh.issuers import LocalIssuer

    if not isinstance(issuer, LocalIssuer):
        raise click.UsageError(
            "--list and --revoke are for the Freehold of this machine; elsewhere use its connect page"
        )
    if revoke is None:
        _list(issuer, as_json)
        return
    living = [one.id for one in issuer.list() if one.revoked is None]
    ended = [one for one in (living if revoke == "all" else [revoke]) if issuer.revoke(one)]
    if revoke != "all" and not ended:
        raise FreeholdError("ssh.not-found", f"There is no living key {revoke}", hint="freehold ssh --list shows them")
    click.echo(json.dumps({"revoked": ended}) if as_json else f"Revoked: {', '.join(ended) or 'there was none'}")


def _list(issuer: "LocalIssuer", as_json: bool) -> None:
    rows = issuer.list()
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "id": one.id,
                        "kind": one.kind,
                        "label": one.label,
                        "key_id": one.key_id,
                        "fingerprint": one.fingerprint,
                        "expires": one.expires,
                        "used": one.used,
                        "revoked": one.revoked is not None,
                    }
                    for one in rows
                ]
            )
        )
        return
    if not rows:
        click.echo("No key was given out. freehold ssh gets one.")
    for one in rows:
        state = "revoked" if one.revoked is not None else f"until {_moment(one.expires)}"
        used = f"used {_moment(one.used)} from {one.used_from}" if one.used is not None else "never used"
        click.echo(f"{one.id}  {one.label or one.kind}  {state}  {used}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
