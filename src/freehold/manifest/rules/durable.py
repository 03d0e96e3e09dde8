"""History, ssh, slots, mesh and logs."""

from collections.abc import Iterator

from freehold.manifest.addresses import host_of
from freehold.manifest.facts import Facts
from freehold.manifest.features import BUILT
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, dotted, show
from freehold.manifest.rules import Finding, rule
from freehold.manifest.sections.durable import Slot
from freehold.manifest.sections.watch import LOG_LEVELS
from freehold.manifest.shape import nearest
from freehold.manifest.units import show_seconds, show_size

PERSISTENT = ("workspace", "home")
DAY = 86400


@rule("E601")
def history_folder_outside_the_computer(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History is asked to cover what is not a persistent folder of the computer."""
    for index, folder in enumerate(manifest.history.folders):
        if folder not in PERSISTENT:
            yield Finding(
                ("history", "folders", index),
                f"history.folders names {show(folder)}, which is not a persistent folder of the computer",
                'Those are "workspace" (/workspace) and "home" (/home/agent)',
            )


@rule("E602")
def quota_above_the_disk(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History may use more than the whole disk."""
    quota = manifest.history.quota
    if quota is not None and quota > facts.disk:
        yield Finding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, and the disk has {facts.disk / 1024**3:.1f} GiB",
            f'Give it less, such as "{show_size(max(facts.disk // 10 // 1024**2, 16) * 1024**2)}"',
        )


@rule("E603")
def quota_of_nothing(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History may use so little that it could not keep one state."""
    quota = manifest.history.quota
    if quota is not None and quota < 16 * 1024**2:
        yield Finding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, too little to undo anything with",
            '16MiB at least: quota = "5GiB"',
        )


@rule("W604")
def nothing_can_be_undone(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History covers nothing, or ignores everything."""
    if not manifest.history.folders:
        yield Finding(
            ("history", "folders"),
            "history.folders is empty, so nothing can be undone",
            'folders = ["workspace", "home"]',
        )
    for index, pattern in enumerate(manifest.history.ignore):
        if pattern.strip() in ("*", "**", "/", "/*", "/**", "**/*", "."):
            yield Finding(
                ("history", "ignore", index),
                f"history.ignore has {show(pattern)}, so nothing can be undone",
                "Name what is not worth keeping",
            )


@rule("E605")
def quiet_out_of_range(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History would wait for no time, or for more than an hour."""
    quiet = manifest.history.quiet
    if not 0.05 <= quiet <= 3600:
        yield Finding(("history", "quiet"), f"history.quiet is {quiet:g} s", 'Between "50ms" and "1h": quiet = "2s"')


@rule("W606")
def quota_above_free_disk(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """History may use more than is free on the disk, what it holds already included."""
    # Advice only: on a disk that has filled up, undo is what the owner needs most, so it must still start.
    quota = manifest.history.quota
    if quota is not None and facts.free_disk < quota <= facts.disk and quota > facts.free_disk + facts.history_size():
        yield Finding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, and {facts.free_disk / 1024**3:.1f} GiB are free",
            "The disk would be full before the quota helps: give it less, or make room",
        )


@rule("W701")
def ssh_lifetime_above_a_day(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """SSH certificates are asked to live longer than a day; they live a day."""
    if manifest.ssh.lifetime > DAY:
        yield Finding(
            ("ssh", "lifetime"),
            f"ssh.lifetime is {show_seconds(manifest.ssh.lifetime)}, and no certificate lives longer than a day",
            'lifetime = "24h"',
        )


@rule("E702")
def ssh_lifetime_too_short(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """SSH certificates would end before they are used."""
    if manifest.ssh.lifetime < 60:
        yield Finding(
            ("ssh", "lifetime"), f"ssh.lifetime is {manifest.ssh.lifetime} s", 'A minute at least: lifetime = "24h"'
        )


def _slots(manifest: Manifest) -> Iterator[tuple[str, Slot]]:
    for name in type(manifest.slots).model_fields:
        yield name, getattr(manifest.slots, name)


@rule("E711")
def external_slot_without_settings(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A slot is kept elsewhere, and nothing says where."""
    for name, slot in _slots(manifest):
        if slot.mode == "external" and not slot.settings:
            key: KeyPath = ("slots", name)
            yield Finding(
                key,
                f"[{dotted(key)}] is external and has no settings",
                f'[slots.{name}.settings] with url = "https://…"',
            )


@rule("E712")
def required_slot_is_off(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A slot is required and switched off, so Freehold would never be ready."""
    for name, slot in _slots(manifest):
        if slot.required and slot.mode == "off":
            yield Finding(
                ("slots", name, "required"),
                f"slots.{name} is required and off",
                'mode = "local", or leave required out',
            )


@rule("W713")
def settings_of_a_slot_that_is_off(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A slot has settings and is switched off."""
    for name, slot in _slots(manifest):
        if slot.settings and slot.mode == "off":
            yield Finding(
                ("slots", name, "settings"), f"slots.{name} has settings and is off", 'mode = "external" to use them'
            )


@rule("E721")
def client_mesh_without_host(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A client of another Freehold does not know which."""
    if manifest.mesh.mode == "client" and not manifest.mesh.host:
        yield Finding(
            ("mesh", "mode"),
            'mesh.mode is "client", and mesh.host does not say whose',
            'host = "https://hub.example.com"',
        )


@rule("E722")
def bad_mesh_host(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The Freehold to connect to is no https address."""
    host = manifest.mesh.host
    if host and not (host.startswith("https://") and host_of(host)):
        yield Finding(
            ("mesh", "host"),
            f"mesh.host is {show(host)}, which is no https address",
            'host = "https://hub.example.com"',
        )


@rule("W731")
def not_in_this_version(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """Something is asked for that this version of Freehold does not have yet."""
    asked: list[tuple[str, KeyPath]] = []
    if manifest.ssh.enabled:
        asked.append(("ssh", ("ssh", "enabled")))
    if manifest.mesh.mode != "off":
        asked.append(("mesh", ("mesh", "mode")))
    asked += [(name, ("slots", name)) for name, slot in _slots(manifest) if slot.mode != "off"]
    for feature, key in asked:
        if feature not in BUILT:
            yield Finding(
                key,
                f"This version of Freehold has no {feature} yet, so {dotted(key)} does nothing",
                "Leave it out until an update brings it",
            )


@rule("E801")
def unknown_log_level(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The log level is not one that exists."""
    level = manifest.observe.log_level
    if level not in LOG_LEVELS:
        meant = nearest(level, LOG_LEVELS) or "info"
        yield Finding(
            ("observe", "log_level"),
            f"observe.log_level is {show(level)}",
            f"One of {', '.join(LOG_LEVELS)}: log_level = {show(meant)}",
        )
