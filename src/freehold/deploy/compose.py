"""`compose.yaml`: Freehold and its computer as two services that share volumes, and nothing else."""

from collections.abc import Mapping

from freehold.deploy.deployment import (
    BRAIN_PROCESSES,
    CADDY_ADDRESS,
    COMPUTER_COMMAND,
    GATEWAY_PORT,
    MACHINE_ADDRESS,
    SUBNET,
    Deployment,
    TemporaryFolder,
    VolumeUse,
)
from freehold.deploy.engine_words import check_container_paths, check_images
from freehold.deploy.yaml_text import YamlValue, write_yaml

COMPOSE_FILE, FILTER_FILE, CADDY_FILE, MANIFEST_FILE = (
    *("compose.yaml", "computer-seccomp.json", "Caddyfile", "freehold.toml"),
)
HEAD = f"""\
# Written by `freehold deploy compose` from {MANIFEST_FILE}. Change the manifest and write it again; with --check it is
# compared. Start it with: docker compose up -d
# Freehold itself is `brain`. Agents work in `computer`, which has no network. No socket of an engine is in either.
"""


def write_compose(deployment: Deployment) -> str:
    """Raises `deploy.odd-path` or `deploy.odd-image`."""
    check_images(deployment)
    check_container_paths(deployment)
    services: dict[str, YamlValue] = {"brain": _describe_brain(deployment), "computer": _describe_computer(deployment)}
    volumes: dict[str, YamlValue] = {name: {} for name in deployment.volume_names}
    tree: dict[str, YamlValue] = {"services": services, "volumes": volumes}
    if deployment.section.caddy:
        services["caddy"] = _describe_caddy(deployment.section.caddy_image)
        volumes |= {"caddy-data": {}, "caddy-config": {}}
    if deployment.has_own_network:
        tree["networks"] = {"front": {"ipam": {"config": [{"subnet": SUBNET, "gateway": MACHINE_ADDRESS}]}}}
    return HEAD + write_yaml(tree)


def _describe_brain(deployment: Deployment) -> dict[str, YamlValue]:
    network: dict[str, YamlValue] = {"networks": ["front"]} if deployment.has_own_network else {}
    return {
        "image": deployment.brain_image,
        "user": f"{deployment.uid}:{deployment.uid}",
        "restart": "unless-stopped",
        "stop_grace_period": "75s",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": BRAIN_PROCESSES,
        "mem_limit": deployment.section.memory,
        "environment": {name: _write_variable(name, value) for name, value in deployment.environment.items()},
        **network,
        "ports": [str(port) for port in deployment.ports],
        "tmpfs": [_write_tmpfs(one) for one in deployment.brain_memory_folders],
        "volumes": [_write_volume(one) for one in deployment.brain_volumes],
        "healthcheck": {
            "test": ["CMD", "curl", "-fsS", "-o", "/dev/null", f"http://127.0.0.1:{GATEWAY_PORT}/ready"],
            "interval": "30s",
            "timeout": "10s",
            "start_period": "60s",
            "retries": 3,
        },
        "labels": _escape_all(deployment.labels),
    }


def _describe_computer(deployment: Deployment) -> dict[str, YamlValue]:
    limits = deployment.manifest.computer.limits
    return {
        "image": deployment.computer_image,
        "depends_on": ["brain"],
        "user": f"{deployment.uid}:{deployment.uid}",
        "hostname": "freehold",
        "entrypoint": [_escape(word) for word in COMPUTER_COMMAND],
        "command": [],
        "restart": "unless-stopped",
        "stop_grace_period": "5s",
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true", f"seccomp:./{FILTER_FILE}"],
        "mem_limit": limits.memory,
        "memswap_limit": limits.memory,
        "pids_limit": limits.processes,
        "cpus": limits.cpus,
        "ulimits": dict(deployment.ulimits),
        "shm_size": deployment.shared_memory,
        "tmpfs": [_write_tmpfs(one) for one in deployment.computer_memory_folders],
        "volumes": [_write_volume(one) for one in deployment.computer_volumes],
        "healthcheck": {"disable": True},
        "labels": _escape_all(deployment.labels),
    }


def _describe_caddy(image: str) -> dict[str, YamlValue]:
    return {
        "image": image,
        "depends_on": ["brain"],
        "restart": "unless-stopped",
        "read_only": True,
        "cap_drop": ["ALL"],
        "cap_add": ["NET_BIND_SERVICE"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": 256,
        "mem_limit": 512 << 20,
        "networks": {"front": {"ipv4_address": CADDY_ADDRESS}},
        "ports": ["80:80", "443:443", "443:443/udp"],
        "tmpfs": ["/tmp:rw,nosuid,nodev,size=67108864,mode=1777"],  # noqa: S108
        "volumes": [f"./{CADDY_FILE}:/etc/caddy/Caddyfile:ro", "caddy-data:/data", "caddy-config:/config"],
    }


def _write_variable(name: str, value: str | None) -> str:
    """One that is empty counts as not set."""
    return f"${{{name}:-}}" if value is None else _escape(value)


def _write_tmpfs(folder: TemporaryFolder) -> str:
    return _escape(f"{folder.target}:{folder.options}")


def _write_volume(use: VolumeUse) -> str:
    options = [*(["ro"] if use.is_read_only else []), *([] if use.fills_empty or not use.is_named else ["nocopy"])]
    return _escape(":".join([use.source, use.target, *([",".join(options)] if options else [])]))


def _escape(text: str) -> str:
    """Compose reads a `$` as the beginning of a variable."""
    return text.replace("$", "$$")


def _escape_all(values: Mapping[str, str]) -> dict[str, YamlValue]:
    return {name: _escape(value) for name, value in values.items()}
