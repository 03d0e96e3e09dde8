"""Checks of `[[computer.mounts]]`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.engine_sockets import find_engine_socket
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.secret_text import parse_reference
from freehold.manifest.sections.computer import MountSection

REMOTE_MOUNTS = ("s3", "webdav", "solid", "rclone")
WRITABLE_MOUNTS = ("folder", *REMOTE_MOUNTS)
_SETTINGS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "size": (("memory",), (), 'size = "64MiB"'),
    "commit": (("git",), (), 'commit = "v1.2.0"'),
    "endpoint": (("s3", "webdav", "solid"), (), 'endpoint = "https://s3.example.org"'),
    "region": ((), ("s3",), 'region = "eu-central-1"'),
    "user": (("solid",), ("s3", "webdav"), 'user = "agent"'),
    "issuer": ((), ("solid",), 'issuer = "https://login.example.com"'),
    "key": (("solid", "rclone"), ("s3", "webdav"), 'key = "secret:photos"'),
    "hosts": (("rclone",), (), 'hosts = ["www.googleapis.com"]'),
}
"""Each setting of a mount: the kinds that need it, the kinds that may have it, and an example."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9_.-]{1,253}|\[?[0-9A-Fa-f:.]{2,45}\]?)(:[0-9]{1,5})?", re.ASCII)

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
    return source if source.name.endswith(".sock") or facts.is_socket(source) else None


@check("E221")
def dangerous_mount(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A mount would show the computer keys, sockets or the system itself."""
    engine_host = manifest.computer.host if manifest.computer.backend in ("docker", "podman") else None
    for index, mount in enumerate(manifest.computer.mounts):
        if not mount.source or mount.kind in REMOTE_MOUNTS:
            continue
        key: KeyPath = ("computer", "mounts", index, "source")
        source = facts.real(mount.source)
        engine = find_engine_socket(source, engine_host, facts)
        danger = danger_of(source, facts)
        if engine:
            yield CheckFinding(
                key,
                f"Mounting {show_value(mount.source)} would give the agent {show_value(str(engine))}, the socket of a container engine: whoever has it is as good as root on this machine",
                'Leave the mount out: no engine can be used inside a computer. Let agents work in a container or a virtual machine instead, with computer.backend = "docker", "podman" or "microvm" (docs/guides/backends.md)',
            )
        elif danger:
            yield CheckFinding(
                key,
                f"Mounting {show_value(mount.source)} would give the agent {show_value(str(danger))}",
                "Mount the one folder that is needed, such as ~/code/library",
            )


@check("W222")
def writable_mount(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The agent may change a mounted folder, and history does not cover it."""
    for index, mount in enumerate(manifest.computer.mounts):
        if mount.writable and mount.kind in WRITABLE_MOUNTS:
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
        elif mount.kind in REMOTE_MOUNTS:
            yield from _check_remote_source(mount, key)
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
        for name, (needed_by, optional_for, example) in _SETTINGS.items():
            key: KeyPath = ("computer", "mounts", index, name)
            given = bool(getattr(mount, name))
            if mount.kind in needed_by and not given:
                yield CheckFinding(key, f"A mount of kind {mount.kind} needs {name}", example)
            elif given and mount.kind not in (*needed_by, *optional_for):
                yield CheckFinding(key, f"A mount of kind {mount.kind} has no {name}", f"Leave {name} out")
        if mount.writable and mount.kind not in WRITABLE_MOUNTS:
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


@check("E226")
def bad_remote_mount(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A remote mount has an address or a key that cannot be used."""
    for index, mount in enumerate(manifest.computer.mounts):
        at: KeyPath = ("computer", "mounts", index)
        for name, address in (("endpoint", mount.endpoint), ("issuer", mount.issuer)):
            if address and not _is_address(address):
                yield CheckFinding(
                    (*at, name),
                    f"{show_key((*at, name))} is {show_value(address)}, which is not the address of a server",
                    f'{name} = "https://s3.example.org", without a user or password in it',
                )
            elif address and mount.kind == "solid" and not _is_encrypted_or_here(address):
                yield CheckFinding(
                    (*at, name),
                    f"{show_key((*at, name))} is {show_value(address)}, and a pod is reached by https only",
                    f'{name} = "https://{urlsplit(address).hostname}"',
                )
        if mount.key and (parse_reference(mount.key) or ("", ""))[0] != "secret":
            yield CheckFinding(
                (*at, "key"),
                f"{show_key((*at, 'key'))} is not the name of a secret",
                'freehold secret set photos, then key = "secret:photos"',
            )
        for number, host in enumerate(mount.hosts):
            if not _HOST.fullmatch(host):
                yield CheckFinding(
                    (*at, "hosts", number),
                    f"{show_value(host)} is not a host, or a host and a port",
                    'hosts = ["www.googleapis.com"]',
                )
        if mount.kind in REMOTE_MOUNTS and manifest.computer.backend == "microvm":
            others = [each.target for number, each in enumerate(manifest.computer.mounts) if number != index]
            for other in ("/workspace", "/home/agent", *others):
                if _overlap(mount.target, other):
                    yield CheckFinding(
                        (*at, "target"),
                        f"With the backend microvm, {show_value(mount.target)} cannot be a remote folder and share a path "
                        f"with {show_value(other)}",
                        'target = "/mnt/remote"',
                    )
        if mount.kind not in ("folder", "memory") and manifest.computer.backend == "attached":
            yield CheckFinding(
                (*at, "kind"),
                f"A computer of backend attached cannot show a mount of kind {mount.kind}",
                "Unpack or mount it on this machine and give the folder to the computer",
            )


def _overlap(one: str, other: str) -> bool:
    """Whether one of two places is inside the other."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first != second and (first.is_relative_to(second) or second.is_relative_to(first))


@check("W227")
def key_without_encryption(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The key and the files of a remote mount travel without encryption."""
    for index, mount in enumerate(manifest.computer.mounts):
        address = mount.endpoint or ""
        if mount.kind != "solid" and _is_address(address) and not _is_encrypted_or_here(address):
            yield CheckFinding(
                ("computer", "mounts", index, "endpoint"),
                f"{show_value(address)} is not encrypted: everybody on the way can read the files",
                f'endpoint = "https://{urlsplit(address).hostname}"',
            )


def _check_remote_source(mount: MountSection, key: KeyPath) -> Iterator[CheckFinding]:
    parts = mount.source.partition(":")[2] if mount.kind == "rclone" else mount.source
    wrong = ".." in parts.split("/") or (not mount.source.isprintable() and mount.source != "")
    if mount.kind == "s3":
        wrong |= not _BUCKET.fullmatch(mount.source.partition("/")[0])
        example = 'source = "photos/2026", the bucket and a folder in it'
    elif mount.kind == "rclone":
        wrong |= not mount.source.partition(":")[0] or ":" not in mount.source
        example = 'source = "drive:Documents", the name of the remote and a folder in it'
    else:
        wrong |= ":" in mount.source
        example = 'source = "Documents", a folder below the endpoint'
    if wrong:
        yield CheckFinding(
            key, f"{show_key(key)} is {show_value(mount.source)}, which is no source of kind {mount.kind}", example
        )


def _is_encrypted_or_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return not address.startswith("http://") or host in ("localhost", "::1") or host.startswith("127.")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(_HOST.fullmatch(parts.hostname or ""))
            and parts.port != 0
            and "@" not in parts.netloc
            and text.isprintable()
        )
    except ValueError:
        return False


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
