"""`freehold build`."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.images.artifacts import ImageFolder, ImageRecord
    from freehold.images.kinds import ImageKind
    from freehold.images.lock import ImageLock
    from freehold.images.section import ImageSection

brain_option = click.option(
    "--brain", is_flag=True, help="The image of Freehold itself, for containers, in the place of the computer's."
)


@click.group(invoke_without_command=True)
@brain_option
@home_option
@json_option(JsonOutput("freehold.images.reports:BuiltImage"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool, brain: bool) -> None:
    """Build the system of the computer from [image] in the manifest.

    The first build chooses the packages and writes freehold.lock beside the manifest. It needs the network. Every
    further build of the same lock is offline and gives the same bytes. It makes a root folder, an image for containers
    and a disk for virtual machines. Set computer.image = "built" to use it, and restart.

    With --brain it makes an image for containers that has Freehold itself and starts it. Its lock is
    freehold-brain.lock.

    Needs mmdebstrap, and erofs-utils for the disk: apt install mmdebstrap erofs-utils

    \b
    Examples:
      freehold build
      freehold build lock        choose newer packages, and show what changes
      freehold build verify      hash everything that was built
      freehold build --brain     the image of Freehold itself, and how to load it
    """
    if ctx.invoked_subcommand is not None:
        if brain:
            raise click.UsageError(f"Put --brain after the command: freehold build {ctx.invoked_subcommand} --brain")
        return
    from freehold.images.build import build_image, remove_old_images
    from freehold.images.lock import read_lock

    order = _read_order(home, brain)
    lock = read_lock(order.images.lock_path)
    if lock is None:
        lock = order.make_lock()
    elif lock.request != order.request:
        what = "Freehold or image.suite" if brain else "[image]"
        raise FreeholdError(
            "image.changed",
            f"{what} changed after {order.images.lock_path.name} was written",
            hint=f"freehold build lock{' --brain' if brain else ''} chooses the packages for it",
        )
    record = build_image(order.images, lock, _say, order.kind)
    if brain or not home.keeper_socket.exists():
        remove_old_images(order.images)
    _print_record(order, record, as_json)


@command.command("lock")
@brain_option
@home_option
@json_option(JsonOutput("freehold.images.reports:ChosenLock"))
def lock_command(home: Home, as_json: bool, brain: bool) -> None:
    """Choose the packages again, and show what changes. Needs the network."""
    from freehold.images.lock import compare_locks, read_lock
    from freehold.images.pool import PackagePool
    from freehold.images.reports import ChosenLock

    order = _read_order(home, brain)
    before = read_lock(order.images.lock_path)
    after = order.make_lock()
    changes = compare_locks(before, after)
    other = read_lock(home.image_lock if brain else home.brain_lock)
    freed = PackagePool(order.images.pool).remove_unused([after] if other is None else [after, other])
    if as_json:
        echo_json(ChosenLock(after.digest, freed, changes), indent=2)
        return
    for change in changes:
        click.echo(f"{change.kind:6}{change.name:32}{change.before or 'new':28}{change.after or 'gone'}")
    build = f"freehold build{' --brain' if brain else ''}"
    click.echo(f"{len(changes)} changes, {len(after.packages)} packages. To build it: {build}")


@command.command("verify")
@brain_option
@home_option
@json_option(JsonOutput("freehold.images.reports:BuiltImage"))
def verify_command(home: Home, as_json: bool, brain: bool) -> None:
    """Compare every file of the image with what was built. Exits 1 at the first difference."""
    order = _read_order(home, brain)
    _print_record(order, order.images.check(thorough=True), as_json)


@dataclass(frozen=True)
class _Order:
    """What is to be built. `request` is the hash of what the lock must have been made for."""

    home: Home
    section: "ImageSection"
    images: "ImageFolder"
    kind: "ImageKind"
    request: str

    def make_lock(self) -> "ImageLock":
        """Choose the packages, and write the lock."""
        from freehold.agents.catalogue.npm import find_npm
        from freehold.images.brain import choose_brain_packages
        from freehold.images.lock import write_lock
        from freehold.images.pool import PackagePool
        from freehold.images.resolution import choose_packages

        pool = PackagePool(self.images.pool)
        if self.kind.is_system:
            lock = choose_packages(self.section, pool, find_npm, _say, self.home)
        else:
            lock = choose_brain_packages(self.section.suite, pool, _say)
        write_lock(self.images.lock_path, lock)
        return lock


def _read_order(home: Home, brain: bool) -> _Order:
    from freehold.images.artifacts import ImageFolder
    from freehold.images.brain import hash_brain_request
    from freehold.images.kinds import BRAIN, COMPUTER
    from freehold.images.resolution import hash_request
    from freehold.images.section import ImageSection
    from freehold.manifest import require_manifest

    if not home.manifest.exists():
        raise FreeholdError("home.missing", f"There is no manifest in {home.root}", hint="Create one: freehold init")
    section = require_manifest(home.manifest, os.environ, home=home.root).manifest.section(ImageSection)
    images = ImageFolder(home.images, home.image_lock)
    if not brain:
        return _Order(home, section, images, COMPUTER, hash_request(section))
    own = ImageFolder(home.brain_images, home.brain_lock, images.pool)
    return _Order(home, section, own, BRAIN, hash_brain_request(section.suite))


def _say(what: str) -> None:
    click.echo(f"{what} …", err=True)


def _print_record(order: _Order, record: "ImageRecord", as_json: bool) -> None:
    from freehold.images.reports import BuiltImage

    if as_json:
        echo_json(BuiltImage(**vars(record), folder=str(order.images.current)), indent=2)
        return
    click.echo(f"{'folder':16}{order.images.current}")
    click.echo(f"{'lock':16}sha256:{record.lock}")
    for name, file in record.files.items():
        click.echo(f"{name:16}sha256:{file.sha256}  {file.size / 1e6:.1f} MB")
    if not order.kind.is_system:
        click.echo(f"{'to load it':16}docker load -i {order.images.current / 'image.tar'}")
        click.echo(f"{'its name':16}{order.kind.name}:{record.lock[:12]}")
