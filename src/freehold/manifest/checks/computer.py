"""Checks of `[computer]`: backend, limits and services."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.sections.computer import LimitsSection
from freehold.manifest.units import show_size

HOST_PORTS = frozenset({3128, 3129, 3130})
"""Where the host answers inside: egress, models and host tools. No service may sit there."""

BUILT = "built"
"""The image that `freehold build` makes; it is checked at boot."""

MAX_PROCESSES = 4_194_304
MAX_OPEN_FILES = 1_048_576
"""What Linux itself allows."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?", re.ASCII)


@check("E201")
def backend_cannot_run_here(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The chosen backend does not work on this machine."""
    backend = manifest.computer.backend
    reason = facts.backends[backend]
    if reason:
        others = [name for name, why in facts.backends.items() if not why]
        either = f"Use backend = {show_value(others[0])}" if others else "Fix that"
        yield CheckFinding(
            ("computer", "backend"),
            f"computer.backend is {show_value(backend)}, and {reason}",
            f"{either}; `freehold doctor` says what this machine can do",
        )


@check("E202")
def limit_of_zero(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A limit is zero or less."""
    for name in LimitsSection.model_fields:
        value: float = getattr(manifest.computer.limits, name)
        if value <= 0:
            yield CheckFinding(
                ("computer", "limits", name),
                f"computer.limits.{name} is {show_value(value)}, and nothing can run with that limit",
                "Leave the line out for the default, or give it a value above zero; no limit can be switched off",
            )


def _beyond(manifest: Manifest, facts: MachineFacts) -> Iterator[tuple[str, str, str, str]]:
    """Limits above what the machine has: name, value, what there is, and a value that fits."""
    limits = manifest.computer.limits
    if limits.memory > facts.memory:
        fitting = max(facts.memory * 3 // 4 // 1024**2, 1) * 1024**2
        yield "memory", show_size(limits.memory), f"{facts.memory / 1024**3:.1f} GiB", f'"{show_size(fitting)}"'
    if limits.cpus > facts.cpus:
        yield "cpus", f"{limits.cpus:g}", f"{facts.cpus} cores", f"{float(facts.cpus)}"
    if limits.processes > MAX_PROCESSES:
        yield "processes", str(limits.processes), f"room for {MAX_PROCESSES}", "1024"
    if limits.open_files > MAX_OPEN_FILES:
        yield "open_files", str(limits.open_files), f"room for {MAX_OPEN_FILES}", "16384"


@check("E203")
def limit_above_the_machine(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A limit that is written down is more than the machine has."""
    for name, value, there, fitting in _beyond(manifest, facts):
        if name in manifest.computer.limits.model_fields_set:
            yield CheckFinding(
                ("computer", "limits", name),
                f"computer.limits.{name} is {value}, and this machine has {there}",
                f"Give it less than there is: {name} = {fitting}",
            )


@check("W204")
def default_limit_above_the_machine(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The default of a limit is more than this machine has, so it would not protect it."""
    for name, value, there, fitting in _beyond(manifest, facts):
        if name not in manifest.computer.limits.model_fields_set and name != "cpus":
            yield CheckFinding(
                ("computer", "limits", name),
                f"computer.limits.{name} is {value} by default, and this machine has {there}",
                f"Write under [computer.limits]: {name} = {fitting}",
            )


@check("W205")
def disk_limit_above_free_disk(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The persistent folders may grow beyond what is free on the disk."""
    disk = manifest.computer.limits.disk
    if "disk" in manifest.computer.limits.model_fields_set and disk > facts.free_disk:
        yield CheckFinding(
            ("computer", "limits", "disk"),
            f"computer.limits.disk is {show_size(disk)}, and {facts.free_disk / 1024**3:.1f} GiB are free",
            "The disk would be full before the limit helps: give it less, or make room",
        )


@check("E206")
def service_without_command(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A service has no command."""
    for name, service in manifest.computer.services.items():
        if not service.command or not service.command[0]:
            key: KeyPath = ("computer", "services", name)
            yield CheckFinding(key, f"[{show_key(key)}] has no command", 'Example: command = "npm run dev"')


@check("E207")
def service_port_outside_the_computer(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A service uses a port that it cannot have inside the computer."""
    taken: dict[int, str] = {}
    for name, service in manifest.computer.services.items():
        port = service.port
        if port is None:
            continue
        key: KeyPath = ("computer", "services", name, "port")
        if port < 1024:
            yield CheckFinding(
                key, f"{show_key(key)} is {port}, and nobody in the computer may open a port below 1024", "port = 5173"
            )
        elif port in HOST_PORTS:
            yield CheckFinding(key, f"{show_key(key)} is {port}, where the host itself answers inside", "port = 5173")
        elif port in taken:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {port}, as is that of {show_value(taken[port])}",
                "Give each service its own port",
            )
        taken.setdefault(port, name)


@check("E208")
def service_folder_outside_the_computer(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A service starts in a folder that the computer does not have."""
    for name, service in manifest.computer.services.items():
        folder = PurePosixPath(service.folder)
        if not folder.is_absolute() or ".." in folder.parts:
            key: KeyPath = ("computer", "services", name, "folder")
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(service.folder)}",
                'A path inside the computer: folder = "/workspace/site"',
            )


@check("W209")
def engine_address_without_docker(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The address of a container engine is given, and none is used."""
    if manifest.computer.host and manifest.computer.backend not in ("docker", "podman", "attached"):
        yield CheckFinding(
            ("computer", "host"),
            f"computer.host is {show_value(manifest.computer.host)}, and the {manifest.computer.backend} backend does not use it",
            'backend = "docker", or leave host (and SANDBOX_HOST) out',
        )


@check("E212")
def computer_attached_over_a_network(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A computer that somebody else starts is reached over a network. Then every program in it has one."""
    host = manifest.computer.host or "/"
    if manifest.computer.backend == "attached" and not host.removeprefix("unix://").startswith("/"):
        yield CheckFinding(
            ("computer", "host"),
            f"computer.host is {show_value(host)}; a computer that is reached over a network has one, and so has every program in it",
            'Share a folder with it: host = "unix:///var/lib/freehold-link"',
        )


@check("E210")
def image_is_missing(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The root folder for the computer is not there."""
    image = manifest.computer.image
    if image is None or image == BUILT or manifest.computer.backend != "bubblewrap":
        return
    if not facts.exists(facts.real(image) / "usr"):
        yield CheckFinding(
            ("computer", "image"),
            f"computer.image is {show_value(image)}, and there is no root file system in that folder",
            'image = "built" and `freehold build`, or leave it out to use this machine\'s own',
        )


@check("E211")
def unusable_name(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A service, model or agent has a name that cannot be used in a URL, a path and a variable alike."""
    tables: tuple[tuple[KeyPath, tuple[str, ...]], ...] = (
        (("computer", "services"), tuple(manifest.computer.services)),
        (("models",), tuple(manifest.models)),
        (("agents",), tuple(manifest.agents.named)),
    )
    for path, names in tables:
        for name in names:
            if not _NAME.fullmatch(name):
                key = (*path, name)
                yield CheckFinding(
                    key,
                    f"{show_value(name)} cannot be a name",
                    "Up to 40 lower-case letters, digits, - and _: my-agent",
                )
