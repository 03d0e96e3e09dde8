"""`freehold deploy`."""

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._options import home_option
from freehold.home import Home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from freehold.deploy.deployment import Deployment, DeploymentForm
    from freehold.deploy.kubernetes import PodController
    from freehold.deploy.scrape import ScrapedMetric
    from freehold.manifest import Manifest

NO_IMAGES = ("", "")
"""Where the images are not named."""
folder_argument = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
check_option = click.option("--check", is_flag=True, help="Write nothing. Exit 1 if a file differs from the manifest.")
brain_image_option = click.option(
    "--brain-image", help="An image of Freehold itself, in the place of the one built here."
)
computer_image_option = click.option(
    "--computer-image", help="An image of the computer, in the place of the one built here."
)


@click.group()
def command() -> None:
    """Write files to run this Freehold as a service or in containers.

    Everything comes from the manifest. With --check nothing is written, and what has changed since is shown.

    \b
    Examples:
      freehold deploy compose /srv/freehold
      freehold deploy systemd --user freehold | sudo tee /etc/systemd/system/freehold.service
    """


@command.command()
@folder_argument
@check_option
@brain_image_option
@computer_image_option
@home_option
def compose(folder: Path, check: bool, brain_image: str | None, computer_image: str | None, home: Home) -> None:
    """Write a folder for docker compose, with two containers.

    Build the two images first, and load them into the engine. With deploy.caddy = true in the manifest, Caddy serves
    https beside them.

    \b
    Examples:
      freehold build && freehold build --brain
      freehold deploy compose /srv/freehold
      freehold deploy compose /srv/freehold --check
    """
    from freehold.deploy.caddyfile import write_caddyfile
    from freehold.deploy.compose import CADDY_FILE, COMPOSE_FILE, FILTER_FILE, MANIFEST_FILE, write_compose

    deployment = _read(home, brain_image, computer_image)
    files = {
        COMPOSE_FILE: write_compose(deployment),
        FILTER_FILE: _write_filters(),
        MANIFEST_FILE: home.manifest.read_text(),
    }
    if deployment.section.caddy:
        files[CADDY_FILE] = write_caddyfile(deployment.manifest, "brain:3000")
    _finish(folder, files, check, f"freehold deploy compose {folder}")
    if not check:
        _tell_foreign_folders(deployment)
        click.echo(f"Start it: cd {folder} && docker compose up -d")


def _read(
    home: Home, brain_image: str | None, computer_image: str | None, form: "DeploymentForm" = "containers"
) -> "Deployment":
    from freehold.deploy.deployment import ImageNames, read_deployment

    return read_deployment(home, ImageNames(brain_image, computer_image), form)


def _write_filters() -> str:
    import json

    from freehold.computer.engine.filter_profile import make_filter_profile

    return json.dumps(json.loads(make_filter_profile()), indent=1) + "\n"


def _write_outer_filters() -> str:
    import json

    from freehold.computer.engine.filter_profile import make_outer_profile

    return json.dumps(json.loads(make_outer_profile()), indent=1) + "\n"


def _finish(folder: Path, files: dict[str, str], check: bool, words: str) -> None:
    from freehold.deploy.written_files import check_files, write_files

    if check:
        check_files(folder, files, words)
        click.echo(f"{folder} is what the manifest says.")
        return
    changed = write_files(folder, files)
    for path in changed:
        click.echo(f"wrote {path}")
    if not changed:
        click.echo(f"{folder} was already what the manifest says.")


def _tell_foreign_folders(deployment: "Deployment") -> None:
    for path in deployment.foreign_folders:
        click.echo(f"Let Freehold write there first: mkdir -p {path} && chown {deployment.uid} {path}")


@command.command()
@folder_argument
@check_option
@brain_image_option
@computer_image_option
@home_option
def quadlet(folder: Path, check: bool, brain_image: str | None, computer_image: str | None, home: Home) -> None:
    """Write units for podman 4.4 or later, which systemd starts.

    FOLDER is below /etc/containers/systemd, or ~/.config/containers/systemd.

    \b
    Examples:
      freehold deploy quadlet /etc/containers/systemd/freehold
      freehold deploy quadlet /etc/containers/systemd/freehold --check
    """
    from freehold.deploy.compose import FILTER_FILE, MANIFEST_FILE
    from freehold.deploy.quadlet import write_quadlet

    deployment = _read(home, brain_image, computer_image)
    files = {
        **write_quadlet(deployment, folder.absolute()),
        FILTER_FILE: _write_filters(),
        MANIFEST_FILE: home.manifest.read_text(),
    }
    _finish(folder, files, check, f"freehold deploy quadlet {folder}")
    if not check:
        _tell_foreign_folders(deployment)
        click.echo("Start it: systemctl daemon-reload && systemctl start freehold-brain freehold-computer")


@command.command()
@folder_argument
@check_option
@click.option(
    "--try",
    "is_tried",
    is_flag=True,
    help="Ask the cluster of kubectl whether it takes the pod. Nothing is kept there.",
)
@click.option(
    "--controller",
    type=click.Choice(("statefulset", "sandbox")),
    default="statefulset",
    show_default=True,
    help="What keeps the pod: Kubernetes itself, or the controller of agent-sandbox.",
)
@brain_image_option
@computer_image_option
@home_option
def kubernetes(
    folder: Path,
    check: bool,
    is_tried: bool,
    controller: "PodController",
    brain_image: str | None,
    computer_image: str | None,
    home: Home,
) -> None:
    """Write a folder for Kubernetes: one pod, the computer inside.

    Push the two images to a registry first. The pod has no privilege, but needs three settings that some clusters
    forbid; --try asks yours. Where they are forbidden, use two containers on a machine: freehold deploy compose.

    \b
    Examples:
      freehold deploy kubernetes freehold-cluster --brain-image REGISTRY/freehold-brain:1 --computer-image REGISTRY/freehold:1
      freehold deploy kubernetes freehold-cluster --check
      freehold deploy kubernetes freehold-cluster --try
    """
    from freehold.deploy.cluster_trial import try_pod
    from freehold.deploy.kubernetes import PROFILE_FILE, write_kubernetes
    from freehold.deploy.pod import make_pod

    deployment = _read(home, brain_image, computer_image, "pod")
    files = write_kubernetes(deployment, home.manifest.read_text(), controller)
    if deployment.section.kubernetes.seccomp_profile is not None:
        files[PROFILE_FILE] = _write_outer_filters()
    _finish(folder, files, check, f"freehold deploy kubernetes {folder}")
    if is_tried:
        try_pod(make_pod(deployment), deployment.section.kubernetes.namespace)
        click.echo("The cluster takes the pod as it is.")
    elif not check:
        click.echo(f"Start it: kubectl apply -f {folder}")


@command.command()
@home_option
def prometheus(home: Home) -> None:
    """Print alert rules for Prometheus that fit this Freehold.

    \b
    Example:
      freehold deploy prometheus > freehold.rules.yml && promtool check rules freehold.rules.yml
    """
    from freehold.deploy.alert_rules import write_alert_rules

    manifest, metrics = _read_metrics(home)
    click.echo(write_alert_rules(manifest, metrics), nl=False)


@command.command()
@home_option
def grafana(home: Home) -> None:
    """Print a dashboard for Grafana, with a panel for each metric.

    \b
    Example:
      freehold deploy grafana > freehold.dashboard.json
    """
    from freehold.deploy.dashboard import write_dashboard

    click.echo(write_dashboard(_read_metrics(home)[1]), nl=False)


def _read_metrics(home: Home) -> "tuple[Manifest, Mapping[str, ScrapedMetric]]":
    from freehold.deploy.scrape import fetch_scrape, read_scrape
    from freehold.manifest import require_manifest

    manifest = require_manifest(home.manifest, os.environ, home=home.root).manifest
    host = manifest.observe.metrics_host
    reached = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    return manifest, read_scrape(fetch_scrape(reached, manifest.observe.metrics_port))


@command.command("env")
@home_option
def environment(home: Home) -> None:
    """Print the variables of the container of Freehold itself.

    \b
    Example:
      freehold deploy env > freehold.env
    """
    from freehold.deploy.environment_file import write_environment

    click.echo(write_environment(_read(home, *NO_IMAGES)), nl=False)


@command.command()
@click.option("--upstream", help="Where Caddy reaches this Freehold. [default: gateway.port on this machine]")
@home_option
def caddy(upstream: str | None, home: Home) -> None:
    """Print a Caddyfile: https with certificates of its own.

    Set gateway.trusted_proxies to the address of Caddy.

    \b
    Example:
      freehold deploy caddy | sudo tee /etc/caddy/Caddyfile
    """
    from freehold.deploy.caddyfile import write_caddyfile

    manifest = read_manifest(home)
    click.echo(write_caddyfile(manifest, upstream or f"127.0.0.1:{manifest.gateway.port}"), nl=False)


@command.command()
@home_option
def fail2ban(home: Home) -> None:
    """Print a filter for fail2ban, with the jail that uses it.

    Freehold bans an address by itself when it fails too often at SSH. With this the whole machine is closed to it.

    \b
    Example:
      freehold deploy fail2ban | sudo tee /etc/fail2ban/filter.d/freehold.conf
    """
    from freehold.deploy.fail2ban import write_filter
    from freehold.manifest import require_manifest
    from freehold.ssh.section import SshSection

    manifest = require_manifest(home.manifest, os.environ, home=home.root).manifest
    click.echo(write_filter(home, manifest.section(SshSection).port), nl=False)


@command.command()
@click.option("--user", help="The user that runs Freehold. [default: you, or freehold when you are root]")
@click.option("--as-user", is_flag=True, help="A unit for the service manager of your own user.")
@home_option
def systemd(user: str | None, as_user: bool, home: Home) -> None:
    """Print a hardened systemd unit for this Freehold.

    It may write to the home, and to what the manifest names outside: the folder of backups and writable mounts. Print it
    again when that changes.

    \b
    Examples:
      freehold deploy systemd --home /srv/freehold --user freehold
      freehold deploy systemd --as-user > ~/.config/systemd/user/freehold.service
    """
    from freehold.deploy.systemd import find_closed_folder, find_needs, render_unit, render_user_unit

    if as_user:
        if user is not None:
            raise click.UsageError("--user and --as-user do not go together")
        click.echo(render_user_unit(home), nl=False)
        return
    default_user = "freehold" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    user = user or default_user
    click.echo(render_unit(user, home, find_needs(read_manifest(home), user, home)), nl=False)
    closed = find_closed_folder(user, home)
    if closed is not None:
        click.echo(
            f"This service would not start: {user} may not enter {closed}. Name the user that owns it with --user, "
            "make a service of your own user with --as-user, or install the Debian package (make deb)",
            err=True,
        )
