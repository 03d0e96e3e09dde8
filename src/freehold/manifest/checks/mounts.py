"""Checks of `[[computer.mounts]]`."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value

_SYSTEM = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/boot",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/sudoers",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/freehold",
)
_PERSONAL = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".password-store",
    ".mozilla",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
)
_TARGETS_TAKEN = (
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt/freehold",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)


def danger_of(source: Path, facts: MachineFacts) -> Path | None:
    """What a mount of this folder would give away: the protected path that it is, lies in, or holds."""
    protected = [Path(path) for path in _SYSTEM] + [facts.user_home / path for path in _PERSONAL] + [facts.home]
    for path in protected:
        if source.is_relative_to(path) or path.is_relative_to(source):
            return path
    return source if source.name.endswith(".sock") else None


@check("E221")
def dangerous_mount(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A mount would show the computer keys, sockets or the system itself."""
    for index, mount in enumerate(manifest.computer.mounts):
        danger = danger_of(facts.real(mount.source), facts) if mount.source else None
        if danger:
            yield CheckFinding(
                ("computer", "mounts", index, "source"),
                f"Mounting {show_value(mount.source)} would give the agent {show_value(str(danger))}",
                "Mount the one folder that is needed, such as ~/code/library",
            )


@check("W222")
def writable_mount(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The agent may change a folder of the host, and history does not cover it."""
    for index, mount in enumerate(manifest.computer.mounts):
        if mount.writable and mount.kind == "folder":
            yield CheckFinding(
                ("computer", "mounts", index, "writable"),
                f"The agent may change {show_value(mount.source)}, and what it does there cannot be undone",
                "Leave writable out and let the agent copy it into /workspace",
            )


@check("E223")
def bad_mount_source(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A mount has no source, or one that is not there."""
    for index, mount in enumerate(manifest.computer.mounts):
        key: KeyPath = ("computer", "mounts", index, "source")
        if mount.kind == "memory":
            if mount.source:
                yield CheckFinding(key, "A folder in memory begins empty and has no source", "Leave source out")
        elif not mount.source.startswith(("/", "~")):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(mount.source)}, which is not an absolute path",
                'source = "~/code/library"',
            )
        elif not facts.exists(facts.real(mount.source)):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(mount.source)}, which is not there",
                "Make the folder, or leave the mount out",
            )


@check("E225")
def bad_mount_kind(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A mount has a setting that its kind does not know, or lacks one that it needs."""
    for index, mount in enumerate(manifest.computer.mounts):
        for name, needed, given, example in (
            ("size", mount.kind == "memory", mount.size, 'size = "64MiB"'),
            ("commit", mount.kind == "git", mount.commit, 'commit = "v1.2.0"'),
        ):
            key: KeyPath = ("computer", "mounts", index, name)
            if needed and not given:
                yield CheckFinding(key, f"A mount of kind {mount.kind} needs {name}", example)
            elif given and not needed:
                yield CheckFinding(key, f"A mount of kind {mount.kind} has no {name}", f"Leave {name} out")
        if mount.writable and mount.kind != "folder":
            yield CheckFinding(
                ("computer", "mounts", index, "writable"),
                f"A mount of kind {mount.kind} cannot be made writable",
                "Leave writable out; a folder in memory is always writable",
            )
        if mount.size is not None and mount.size > manifest.computer.limits.memory:
            yield CheckFinding(
                ("computer", "mounts", index, "size"),
                "A folder in memory is larger than computer.limits.memory",
                'size = "64MiB", or raise memory in [computer.limits]',
            )


@check("E224")
def bad_mount_target(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A mount would cover something that the computer needs, or another mount."""
    seen: set[PurePosixPath] = set()
    for index, mount in enumerate(manifest.computer.mounts):
        key: KeyPath = ("computer", "mounts", index, "target")
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(mount.target)}, which is not an absolute path",
                'target = "/mnt/library"',
            )
        elif str(target) in ("/", "//", "/workspace", "/home", "/home/agent", "/tmp") or any(  # noqa: S108 - inside the computer
            target.is_relative_to(taken) for taken in _TARGETS_TAKEN
        ):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(mount.target)}, which the computer needs itself",
                'target = "/mnt/library"',
            )
        elif target in seen:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(mount.target)}, as is that of another mount",
                "Give each its own target",
            )
        seen.add(target)
