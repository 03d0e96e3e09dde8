"""`freehold init`."""

import os
from pathlib import Path

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder


@click.command()
@click.option("--owner", metavar="HANDLE_OR_DID", help="Whose Freehold this is; a handle is looked up once.")
@click.option("--force", is_flag=True, help="Start over; the manifest that is there is kept beside the new one.")
@home_option
def command(owner: str | None, force: bool, home: Home) -> None:
    """Write a manifest with every key explained.

    With --owner on a Freehold that has a manifest already, only the owner is written into it.

    \b
    Example:
      freehold init
      freehold init --owner alice.bsky.social
    """
    path = home.manifest
    there = path.exists()
    if there and not force and owner is None:
        raise FreeholdError(
            "manifest.exists",
            f"There is a manifest already: {path}",
            hint="Edit it, or start over with `freehold init --force` (the old one is kept as freehold.toml.old)",
        )
    identity = _identify(owner, path) if owner else {}
    ensure_private_folder(home.root)
    if there and not force:
        _set_owner(path, identity)
        click.echo(f"Wrote the owner {identity['did']} into {path}")
        return
    _write(path, identity, keep=there)
    click.echo(f"Wrote {path}" + (f" for {identity['did']}" if identity else ""))
    click.echo("Next: freehold up")


def _identify(owner: str, path: Path) -> dict[str, str]:
    """DID and, when that is what was given, handle. A handle is resolved, and believed only when its DID names it too."""
    from freehold.manifest import Manifest, load_manifest
    from freehold.manifest.facts import Facts
    from freehold.manifest.rules.door import bad_did, bad_handle

    facts = Facts.of_this_machine(path.parent)
    if owner.startswith("did:"):
        found, wrong = {"did": owner}, bad_did
    else:
        found, wrong = {"handle": owner.strip().removeprefix("@").lower()}, bad_handle
    for finding in wrong(Manifest.model_validate({"owner": found}), facts):
        raise FreeholdError("manifest.bad-owner", f"{owner!r} is neither a handle nor a DID", hint=finding.hint)
    if "handle" in found:
        from freehold.identity.atproto.resolve import resolve_handle

        settings = load_manifest(path, os.environ).manifest.owner
        found["did"] = resolve_handle(found["handle"], service=settings.service, plc_url=settings.plc_url)
    return found


def _set_owner(path: Path, identity: dict[str, str]) -> None:
    from freehold.manifest.edit import edit_manifest

    edit_manifest(path, "owner.did", identity["did"])
    edit_manifest(path, "owner.handle", identity.get("handle"))


def _write(path: Path, identity: dict[str, str], *, keep: bool) -> None:
    from freehold.manifest.edit import write_private
    from freehold.manifest.starter import starter_manifest

    text = starter_manifest({("owner", key): value for key, value in identity.items()})
    if keep:
        path.replace(path.with_name(f"{path.name}.old"))
    write_private(path, text)
