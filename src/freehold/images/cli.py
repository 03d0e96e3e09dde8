"""`freehold build`."""

import json
import os
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.images.artifacts import ImageFolder, ImageRecord
    from freehold.images.lock import ImageLock
    from freehold.images.section import ImageSection


@click.group(invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Build the system of the computer from [image] in the manifest.

    The first build chooses the packages and writes freehold.lock beside the manifest. Every further build of the same
    lock is offline and gives the same bytes. It makes a root folder, an image for containers and a disk for virtual
    machines. Set computer.image = "built" to use it, and restart.

    \b
    Examples:
      freehold build
      freehold build lock        choose newer packages, and show what changes
      freehold build verify      hash everything that was built
    """
    if ctx.invoked_subcommand is not None:
        return
    from freehold.images.build import build_image, remove_old_images
    from freehold.images.lock import read_lock
    from freehold.images.resolution import hash_request

    images, section = _open(home)
    lock = read_lock(home.image_lock)
    if lock is None:
        lock = _make_lock(home, images, section)
    elif lock.request != hash_request(section):
        raise FreeholdError(
            "image.changed",
            f"[image] changed after {home.image_lock.name} was written",
            hint="freehold build lock chooses the packages for it",
        )
    record = build_image(images, lock, _say)
    if not home.keeper_socket.exists():
        remove_old_images(images)
    _print_record(home, record, as_json)


@command.command("lock")
@home_option
@json_option
def lock_command(home: Home, as_json: bool) -> None:
    """Choose the packages again, and show what changes. Needs the network."""
    from freehold.images.lock import compare_locks, read_lock
    from freehold.images.pool import PackagePool
    from freehold.strict_json import encode

    images, section = _open(home)
    before = read_lock(home.image_lock)
    after = _make_lock(home, images, section)
    changes = compare_locks(before, after)
    freed = PackagePool(images.pool).remove_unused([after])
    if as_json:
        click.echo(json.dumps({"lock": after.digest, "freed": freed, "changes": encode(changes)}, indent=2))
        return
    for change in changes:
        click.echo(f"{change.kind:6}{change.name:32}{change.before or 'new':28}{change.after or 'gone'}")
    click.echo(f"{len(changes)} changes, {len(after.packages)} packages. To build it: freehold build")


@command.command("verify")
@home_option
@json_option
def verify_command(home: Home, as_json: bool) -> None:
    """Hash every file of the current image and compare it with what was built. Exits 1 at the first difference."""
    images, _ = _open(home)
    _print_record(home, images.check(thorough=True), as_json)


def _open(home: Home) -> "tuple[ImageFolder, ImageSection]":
    from freehold.images.artifacts import ImageFolder
    from freehold.images.section import ImageSection
    from freehold.manifest import require_manifest

    if not home.manifest.exists():
        raise FreeholdError("home.missing", f"There is no manifest in {home.root}", hint="Create one: freehold init")
    manifest = require_manifest(home.manifest, os.environ, home=home.root).manifest
    return ImageFolder(home.images, home.image_lock), manifest.section(ImageSection)


def _make_lock(home: Home, images: "ImageFolder", section: "ImageSection") -> "ImageLock":
    from freehold.agents.catalogue.npm import find_npm
    from freehold.images.lock import write_lock
    from freehold.images.pool import PackagePool
    from freehold.images.resolution import choose_packages

    lock = choose_packages(section, PackagePool(images.pool), find_npm, _say, home.agents)
    write_lock(home.image_lock, lock)
    return lock


def _say(what: str) -> None:
    click.echo(f"{what} …", err=True)


def _print_record(home: Home, record: "ImageRecord", as_json: bool) -> None:
    from freehold.strict_json import encode

    if as_json:
        click.echo(json.dumps({"folder": str(home.images / "current"), **encode(record)}, indent=2))
        return
    click.echo(f"{'folder':16}{home.images / 'current'}")
    click.echo(f"{'lock':16}sha256:{record.lock}")
    for name, file in record.files.items():
        click.echo(f"{name:16}sha256:{file.sha256}  {file.size / 1e6:.1f} MB")
