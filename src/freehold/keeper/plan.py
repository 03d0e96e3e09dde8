"""What the keeper needs to know of the manifest, as plain values.

The manifest is read by a process of its own (`freehold.keeper.reading`): its models and rules take a dozen megabytes
that the process that never dies would carry for ever.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MountPlan:
    source: str
    target: str
    writable: bool


@dataclass(frozen=True)
class ServicePlan:
    name: str
    command: tuple[str, ...]
    port: int | None
    folder: str
    restart_on_undo: bool


@dataclass(frozen=True)
class Advice:
    """A `W…` problem of the manifest: shown, and stopping nothing."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class Plan:
    checksum: str
    owner: str | None
    gateway_host: str
    gateway_port: int
    public_url: str | None
    session_idle: float
    session_absolute: float
    keeper_host: str
    keeper_port: int
    metrics_host: str
    metrics_port: int
    otlp_endpoint: str | None
    ssh_host: str
    ssh_port: int | None
    """None when the side door is off."""
    backend: str
    image: str | None
    limits: dict[str, float]
    mounts: tuple[MountPlan, ...]
    services: tuple[ServicePlan, ...]
    history_folders: tuple[str, ...]
    history_ignore: tuple[str, ...]
    history_quota: int | None
    history_quiet: float
    advice: tuple[Advice, ...]

    @property
    def gateway_url(self) -> str:
        """Where the owner's browser goes."""
        if self.public_url:
            return self.public_url.rstrip("/")
        # AT Protocol sends browsers back to 127.0.0.1, never to the name localhost.
        return f"http://{'localhost' if self.owner is None else '127.0.0.1'}:{self.gateway_port}"

    @property
    def keeper_url(self) -> str:
        return f"http://{'localhost' if self.owner is None else '127.0.0.1'}:{self.keeper_port}"


def plan_from_json(body: dict[str, Any]) -> Plan:
    """The plan that our own reading process printed."""
    return Plan(
        **body
        | {
            "mounts": tuple(MountPlan(**mount) for mount in body["mounts"]),
            "services": tuple(ServicePlan(**one | {"command": tuple(one["command"])}) for one in body["services"]),
            "advice": tuple(Advice(**one) for one in body["advice"]),
            "history_folders": tuple(body["history_folders"]),
            "history_ignore": tuple(body["history_ignore"]),
        }
    )
