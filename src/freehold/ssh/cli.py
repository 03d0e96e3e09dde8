"""`freehold ssh`."""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.strict_json import EpochSeconds

if TYPE_CHECKING:
    from freehold.ssh.credentials import Credential
    from freehold.ssh.issuers import LocalIssuer, RemoteIssuer

_OPTIONS_WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""The options of ssh that take a value, which may be the next word."""


@dataclass(frozen=True)
class ListedSshKey:
    """`used` is null for a key that was never used."""

    id: str
    kind: str
    label: str
    key_id: str
    fingerprint: str
    expires: EpochSeconds
    used: EpochSeconds | None
    revoked: bool


@dataclass(frozen=True)
class RevokedSshKeys:
    revoked: tuple[str, ...]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SSH-OPTION…] [COMMAND…]")
@click.option(
    "--to", "url", metavar="URL", help="Connect to a remote Freehold; needs freehold login URL --scope admin."
)
@click.option(
    "--name", default="freehold", show_default=True, metavar="HOST", help="The host name in the configuration of ssh."
)
@click.option("--config", "show_config", is_flag=True, help="Print the text for ~/.ssh/config.")
@click.option("--install", is_flag=True, help="Add it to ~/.ssh/config, so that plain ssh, scp, rsync and git work.")
@click.option("--renew", is_flag=True, help="Renew the certificate if needed, print nothing, and exit.")
@click.option("--fresh", is_flag=True, help="Get a new certificate even if the present one is valid.")
@click.option("--hours", type=click.FloatRange(0.01, 24), help="How long the certificate is valid.")
@click.option("--list", "show_list", is_flag=True, help="List the issued keys.")
@click.option("--revoke", metavar="ID|all", help="Revoke a key and end its connections.")
@home_option
@json_option(JsonOutput(ListedSshKey, "list", when="--list"), JsonOutput(RevokedSshKeys, when="--revoke"))
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
    """Open a shell in the computer, or run a command there.

    This creates a key on this machine with a certificate that is valid for at most a day and is renewed automatically.
    You can put options of ssh before the command. Open what -L forwards at http://localhost:PORT. The local port may not
    be one of the control center or of the recovery page.

    \b
    Examples:
      freehold ssh
      freehold ssh git -C /workspace status
      freehold ssh -L 5173:localhost:5173
      freehold ssh --install && rsync -a notes/ freehold:notes/
      freehold ssh --to https://agent.example.com uptime
    """
    from freehold.ssh.client_key_store import ClientKeyStore, check_host, freehold_command
    from freehold.ssh.issuers import LocalIssuer, RemoteIssuer

    issuer = RemoteIssuer(url) if url is not None else LocalIssuer(home)
    if show_list or revoke is not None:
        _manage_keys(issuer, revoke, as_json)
        return
    key_store = ClientKeyStore(issuer, check_host(name))
    key_store.renew(seconds=None if hours is None else int(hours * 3600), force=fresh or hours is not None)
    place = ["--to", url] if url is not None else ["--home", str(home.root)]
    renewal = [*freehold_command(), "ssh", *place, "--name", name, "--renew"]
    if renew:
        return
    if show_config:
        click.echo(key_store.render_ssh_config(renewal), nl=False)
        return
    if install:
        changed = key_store.install(renewal, Path.home() / ".ssh" / "config")
        click.echo(f"{'Added to' if changed else 'Already in'} ~/.ssh/config; try: ssh {name}")
        return
    if isinstance(issuer, LocalIssuer):
        issuer.require_running()
    options, remote_command = _split(words)
    check_forwards(options, issuer.page_ports)
    argv = key_store.ssh_command(options, remote_command)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - ssh replaces this process
    except FileNotFoundError:
        raise FreeholdError(
            "ssh.no-client",
            "The program ssh is not installed",
            hint="Install the OpenSSH client: apt install openssh-client",
        ) from None


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Separate the options of ssh from the command after them."""
    options, rest = list[str](), list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        options.append(option)
        if (
            option[-1] in _OPTIONS_WITH_VALUE
            and not any(letter in _OPTIONS_WITH_VALUE for letter in option[1:-1])
            and rest
        ):
            options.append(rest.pop(0))
    return options, rest


def check_forwards(options: list[str], page_ports: frozenset[int]) -> None:
    """Refuse `-L` at a local port of our own pages: a browser would take the app for the control center itself."""
    for place, option in enumerate(options):
        before, found, value = option.partition("L")
        if not found or not option.startswith("-") or any(letter in _OPTIONS_WITH_VALUE for letter in before):
            continue
        spec = value or (options[place + 1] if place + 1 < len(options) else "")
        numbers = [
            int(part) for part in re.split(r"[:/]", re.sub(r"^(?:\[[^]]*\]|\*)[:/]", "", spec)) if part.isdigit()
        ]
        if not spec.startswith("/") and numbers and numbers[0] in page_ports:
            raise FreeholdError(
                "ssh.port",
                f"Port {numbers[0]} on this machine belongs to Freehold's own pages",
                hint=f"Choose another local port, for example: freehold ssh -L {numbers[0] + 10000}:localhost:{numbers[-1]}",
            )


def _manage_keys(issuer: "LocalIssuer | RemoteIssuer", revoke: str | None, as_json: bool) -> None:
    from freehold.ssh.issuers import LocalIssuer

    if not isinstance(issuer, LocalIssuer):
        raise click.UsageError(
            "--list and --revoke work only for the Freehold on this machine; for a remote one, use its Connect page"
        )
    if revoke is None:
        _list(issuer, as_json)
        return
    active = [one.id for one in issuer.list() if one.revoked is None]
    ended = [one for one in (active if revoke == "all" else [revoke]) if issuer.revoke(one)]
    if revoke != "all" and not ended:
        raise FreeholdError("ssh.not-found", f"There is no active key {revoke}", hint="freehold ssh --list lists them")
    if as_json:
        echo_json(RevokedSshKeys(tuple(ended)))
    else:
        click.echo(f"Revoked: {', '.join(ended) or 'none'}")


def _describe_key(one: "Credential") -> ListedSshKey:
    return ListedSshKey(
        one.id, one.kind, one.label, one.key_id, one.fingerprint, one.expires, one.used, one.revoked is not None
    )


def _list(issuer: "LocalIssuer", as_json: bool) -> None:
    rows = issuer.list()
    if as_json:
        echo_json([_describe_key(one) for one in rows])
        return
    if not rows:
        click.echo("There are no keys. Get one: freehold ssh")
    for one in rows:
        state = "revoked" if one.revoked is not None else f"until {_moment(one.expires)}"
        used = f"used {_moment(one.used)} from {one.used_from}" if one.used is not None else "never used"
        click.echo(f"{one.id}  {one.label or one.kind}  {state}  {used}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
