"""Folders of the host that the computer sees."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from freehold.manifest.facts import Facts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, dotted, show
from freehold.manifest.rules import Finding, rule

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


def danger_of(source: Path, facts: Facts) -> Path | None:
    """What a mount of this folder would give away: the protected path that it is, lies in, or holds."""
    protected = [Path(path) for path in _SYSTEM] + [facts.user_home / path for path in _PERSONAL] + [facts.home]
    for path in protected:
        if source.is_relative_to(path) or path.is_relative_to(source):
            return path
    return source if source.name.endswith(".sock") else None


@rule("E221")
def dangerous_mount(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A mount would show the computer keys, sockets or the system itself."""
    for index, mount in enumerate(manifest.computer.mounts):
        danger = danger_of(facts.real(mount.source), facts) if mount.source else None
        if danger:
            yield Finding(
                ("computer", "mounts", index, "source"),
                f"Mounting {show(mount.source)} would give the agent {show(str(danger))}",
                "Mount the one folder that is needed, such as ~/code/library",
            )


@rule("W222")
def writable_mount(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The agent may change a folder of the host, and history does not cover it."""
    for index, mount in enumerate(manifest.computer.mounts):
        if mount.writable:
            yield Finding(
                ("computer", "mounts", index, "writable"),
                f"The agent may change {show(mount.source)}, and what it does there cannot be undone",
                "Leave writable out and let the agent copy it into /workspace",
            )


@rule("E223")
def bad_mount_source(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A mount has no source, or one that is not there."""
    for index, mount in enumerate(manifest.computer.mounts):
        key: KeyPath = ("computer", "mounts", index, "source")
        if not mount.source.startswith(("/", "~")):
            yield Finding(
                key, f"{dotted(key)} is {show(mount.source)}, which is no full path", 'source = "~/code/library"'
            )
        elif not facts.exists(facts.real(mount.source)):
            yield Finding(
                key,
                f"{dotted(key)} is {show(mount.source)}, which is not there",
                "Make the folder, or leave the mount out",
            )


@rule("E224")
def bad_mount_target(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A mount would cover something that the computer needs, or another mount."""
    seen: set[PurePosixPath] = set()
    for index, mount in enumerate(manifest.computer.mounts):
        key: KeyPath = ("computer", "mounts", index, "target")
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts:
            yield Finding(
                key, f"{dotted(key)} is {show(mount.target)}, which is no full path", 'target = "/mnt/library"'
            )
        elif str(target) in ("/", "//", "/workspace", "/home", "/home/agent", "/tmp") or any(  # noqa: S108 - inside the computer
            target.is_relative_to(taken) for taken in _TARGETS_TAKEN
        ):
            yield Finding(
                key,
                f"{dotted(key)} is {show(mount.target)}, which the computer needs itself",
                'target = "/mnt/library"',
            )
        elif target in seen:
            yield Finding(
                key, f"{dotted(key)} is {show(mount.target)}, as is that of another mount", "Give each its own target"
            )
        seen.add(target)
