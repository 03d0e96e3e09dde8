"""`freehold init`."""

import os
from pathlib import Path

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder


@click.command()
@click.option("--owner", metavar="HANDLE_OR_DID", help="The owner. A handle is resolved to a DID once.")
@click.option("--force", is_flag=True, help="Write a new manifest; the old one is kept as freehold.toml.old.")
@home_option
def command(owner: str | None, force: bool, home: Home) -> None:
    """Create a manifest with every key explained.

    If a manifest exists, --owner changes only the owner in it.

    \b
    Examples:
      freehold init
      freehold init --owner alice.bsky.social
    """
    path = home.manifest
    exists = path.exists()
    if exists and not force and owner is None:
        raise FreeholdError(
            "manifest.exists",
            f"The manifest {path} already exists",
            hint="Edit it, or write a new one: freehold init --force (the old one is kept as freehold.toml.old)",
        )
    identity = _identify(owner, path) if owner else {}
    ensure_private_folder(home.root)
    if exists and not force:
        _set_owner(path, identity)
        click.echo(f"Wrote the owner {identity['did']} into {path}")
        return
    _write(path, identity, keep=exists)
    click.echo(f"Wrote {path}" + (f" for {identity['did']}" if identity else ""))
    click.echo("Next: freehold up")


def _identify(owner: str, path: Path) -> dict[str, str]:
    """The DID, and the handle if one was given. A handle is accepted only if its DID names it too."""
    from freehold.manifest import Manifest, load_manifest
    from freehold.manifest.checks.access import bad_did, bad_handle
    from freehold.manifest.facts import MachineFacts

    facts = MachineFacts.gather(path.parent)
    if owner.startswith("did:"):
        found, wrong = {"did": owner}, bad_did
    else:
        found, wrong = {"handle": owner.strip().removeprefix("@").lower()}, bad_handle
    for finding in wrong(Manifest.model_validate({"owner": found}), facts):
        raise FreeholdError("manifest.bad-owner", f"{owner!r} is neither a handle nor a DID", hint=finding.hint)
    if "handle" in found:
        from freehold.identity.atproto.resolver import resolve_handle

        settings = load_manifest(path, os.environ).manifest.owner
        found["did"] = resolve_handle(found["handle"], service=settings.service, plc_url=settings.plc_url)
    return found


def _set_owner(path: Path, identity: dict[str, str]) -> None:
    from freehold.manifest.edit import edit_manifest

    edit_manifest(path, "owner.did", identity["did"])
    edit_manifest(path, "owner.handle", identity.get("handle"))


def _write(path: Path, identity: dict[str, str], *, keep: bool) -> None:
    from freehold.manifest.edit import write_private
    from freehold.manifest.template import starter_manifest

    text = starter_manifest({("owner", key): value for key, value in identity.items()})
    if keep:
        path.replace(path.with_name(f"{path.name}.old"))
    write_private(path, text)
