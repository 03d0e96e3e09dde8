"""Checks of `[history]`."""

from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value
from freehold.manifest.units import show_size

PERSISTENT_FOLDERS = ("workspace", "home")


@check("E601")
def history_folder_outside_the_computer(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History is asked to cover what is not a persistent folder of the computer."""
    for index, folder in enumerate(manifest.history.folders):
        if folder not in PERSISTENT_FOLDERS:
            yield CheckFinding(
                ("history", "folders", index),
                f"history.folders names {show_value(folder)}, which is not a persistent folder of the computer",
                'Those are "workspace" (/workspace) and "home" (/home/agent)',
            )


@check("E602")
def quota_above_the_disk(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History may use more than the whole disk."""
    quota = manifest.history.quota
    if quota is not None and quota > facts.disk:
        yield CheckFinding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, and the disk has {facts.disk / 1024**3:.1f} GiB",
            f'Give it less, such as "{show_size(max(facts.disk // 10 // 1024**2, 16) * 1024**2)}"',
        )


@check("E603")
def quota_of_nothing(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History may use so little that it could not keep one state."""
    quota = manifest.history.quota
    if quota is not None and quota < 16 * 1024**2:
        yield CheckFinding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, too little to undo anything with",
            '16MiB at least: quota = "5GiB"',
        )


@check("W604")
def nothing_can_be_undone(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History covers nothing, or ignores everything."""
    if not manifest.history.folders:
        yield CheckFinding(
            ("history", "folders"),
            "history.folders is empty, so nothing can be undone",
            'folders = ["workspace", "home"]',
        )
    for index, pattern in enumerate(manifest.history.ignore):
        if pattern.strip() in ("*", "**", "/", "/*", "/**", "**/*", "."):
            yield CheckFinding(
                ("history", "ignore", index),
                f"history.ignore has {show_value(pattern)}, so nothing can be undone",
                "Name what is not worth keeping",
            )


@check("E605")
def quiet_out_of_range(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History would wait for no time, or for more than an hour."""
    quiet = manifest.history.quiet
    if not 0.05 <= quiet <= 3600:
        yield CheckFinding(
            ("history", "quiet"), f"history.quiet is {quiet:g} s", 'Between "50ms" and "1h": quiet = "2s"'
        )


@check("W606")
def quota_above_free_disk(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """History may use more than is free on the disk, what it holds already included."""
    # Advice only: on a disk that has filled up, undo is what the owner needs most, so it must still start.
    quota = manifest.history.quota
    if quota is not None and facts.free_disk < quota <= facts.disk and quota > facts.free_disk + facts.history_size():
        yield CheckFinding(
            ("history", "quota"),
            f"history.quota is {show_size(quota)}, and {facts.free_disk / 1024**3:.1f} GiB are free",
            "The disk would be full before the quota helps: give it less, or make room",
        )
