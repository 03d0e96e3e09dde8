"""Quadlet units: the same two containers for podman, started and kept by systemd."""

import json
from collections.abc import Iterator
from pathlib import Path

from freehold.computer.walls.inside import MASKED_FILES, MASKED_FOLDERS
from freehold.deploy.compose import FILTER_FILE
from freehold.deploy.deployment import (
    BRAIN_PROCESSES,
    COMPUTER_COMMAND,
    GATEWAY_PORT,
    MACHINE_ADDRESS,
    SUBNET,
    Deployment,
    TemporaryFolder,
    VolumeUse,
)
from freehold.deploy.engine_words import check_images, check_unit_paths
from freehold.errors import FreeholdError

BRAIN_UNIT, COMPUTER_UNIT = "freehold-brain.container", "freehold-computer.container"
NETWORK_UNIT = "freehold-front.network"
ENVIRONMENT_FILE = "freehold.env"
HEAD = """\
# Written by `freehold deploy quadlet` from freehold.toml. Change the manifest and write it again; with --check it is
# compared. Start it with: systemctl daemon-reload && systemctl start freehold-brain freehold-computer
# Variables such as OWNER_DID and OPENAI_API_KEY come from {environment}, if that exists.
"""
INSTALL = ("[Install]", "WantedBy=multi-user.target default.target")


def write_quadlet(deployment: Deployment, folder: Path) -> dict[str, str]:
    """Every unit by its file name. `folder` is where they will be: units name files in it by their whole path.

    Raises `deploy.unsupported`, `deploy.odd-path` or `deploy.odd-image`.
    """
    if deployment.section.caddy:
        raise FreeholdError(
            "deploy.unsupported",
            "deploy.caddy is true, and units for podman have no Caddy",
            hint="Set it to false, and serve https with a Caddy of this machine: freehold deploy caddy",
        )
    check_images(deployment)
    check_unit_paths(deployment, str(folder))
    files = {
        BRAIN_UNIT: _join(folder, _describe_brain(deployment, folder)),
        COMPUTER_UNIT: _join(folder, _describe_computer(deployment, folder)),
    }
    for name in deployment.volume_names:
        files[f"freehold-{name}.volume"] = (
            f"# Written by `freehold deploy quadlet`.\n[Volume]\nVolumeName=freehold-{name}\n"
        )
    if deployment.has_own_network:
        files[NETWORK_UNIT] = (
            "# Written by `freehold deploy quadlet`.\n"
            f"[Network]\nNetworkName=freehold-front\nSubnet={SUBNET}\nGateway={MACHINE_ADDRESS}\n"
        )
    return files


def _join(folder: Path, lines: Iterator[str]) -> str:
    return HEAD.format(environment=folder / ENVIRONMENT_FILE) + "".join(f"{line}\n" for line in lines)


def _describe_brain(deployment: Deployment, folder: Path) -> Iterator[str]:
    yield from ("[Unit]", "Description=Freehold", "After=network-online.target", "")
    yield from ("[Container]", f"Image={deployment.brain_image}", "ContainerName=freehold-brain")
    yield from _describe_walls(deployment)
    if deployment.has_own_network:
        yield f"Network={NETWORK_UNIT}"
    for name, value in deployment.environment.items():
        # Without a value it is passed on from the service.
        yield f"PodmanArgs=--env={name}" if value is None else f"Environment={_quote(f'{name}={value}')}"
    yield f"PodmanArgs=--memory={deployment.section.memory} --pids-limit={BRAIN_PROCESSES}"
    yield from (f"PublishPort={port}" for port in deployment.ports)
    yield from (_write_tmpfs(one) for one in deployment.brain_memory_folders)
    yield from (f"Volume={_write_volume(one, folder)}" for one in deployment.brain_volumes)
    yield f"HealthCmd=curl -fsS -o /dev/null http://127.0.0.1:{GATEWAY_PORT}/ready"
    yield from ("HealthInterval=30s", "HealthTimeout=10s", "HealthStartPeriod=60s", "HealthRetries=3")
    yield from (f"Label={name}={value}" for name, value in deployment.labels.items())
    yield from ("", "[Service]", "Restart=always", "TimeoutStopSec=75", f"EnvironmentFile=-{folder / ENVIRONMENT_FILE}")
    yield from ("", *INSTALL)


def _describe_computer(deployment: Deployment, folder: Path) -> Iterator[str]:
    limits = deployment.manifest.computer.limits
    yield from ("[Unit]", "Description=The computer of Freehold", "Wants=freehold-brain.service", "")
    yield from ("[Container]", f"Image={deployment.computer_image}", "ContainerName=freehold-computer")
    yield from _describe_walls(deployment)
    yield from ("Network=none", "HostName=freehold", f"SeccompProfile={folder / FILTER_FILE}")
    yield f"Exec={' '.join(_quote(word) for word in COMPUTER_COMMAND)}"
    yield f"PodmanArgs=--memory={limits.memory} --memory-swap={limits.memory} --cpus={limits.cpus:g}"
    yield f"PodmanArgs=--pids-limit={limits.processes} --shm-size={deployment.shared_memory}"
    yield from (f"PodmanArgs=--ulimit={name}={value}:{value}" for name, value in deployment.ulimits.items())
    masked = ":".join(f"/proc/{name}" for name in (*MASKED_FILES, *MASKED_FOLDERS))
    yield f"PodmanArgs=--security-opt=mask={masked}"
    yield from (_write_tmpfs(one) for one in deployment.computer_memory_folders)
    yield from (f"Volume={_write_volume(one, folder)}" for one in deployment.computer_volumes)
    yield from (f"Label={name}={value}" for name, value in deployment.labels.items())
    yield from ("", "[Service]", "Restart=always", "TimeoutStopSec=10", "", *INSTALL)


def _describe_walls(deployment: Deployment) -> Iterator[str]:
    yield from (f"User={deployment.uid}", f"Group={deployment.uid}")
    yield from ("ReadOnly=true", "ReadOnlyTmpfs=false", "DropCapability=all", "NoNewPrivileges=true")


def _write_tmpfs(folder: TemporaryFolder) -> str:
    """Podman would copy into it what the image or the kernel has there, and that does not fit into a cover."""
    return f"Tmpfs={folder.target}:{folder.options},notmpcopyup"


def _write_volume(use: VolumeUse, folder: Path) -> str:
    source = f"freehold-{use.source}.volume" if use.is_named else str(folder / use.source)
    options = [*(["ro"] if use.is_read_only else []), *([] if use.fills_empty or not use.is_named else ["nocopy"])]
    return ":".join([source, use.target, *([",".join(options)] if options else [])])


def _quote(word: str) -> str:
    """As systemd reads it: C escapes in double quotes, and a percent sign twice."""
    return json.dumps(word, ensure_ascii=False).replace("%", "%%")
