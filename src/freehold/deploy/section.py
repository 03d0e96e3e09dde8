"""`[deploy]`: what containers of this Freehold look like from outside."""

from typing import Annotated

from pydantic import Field, Strict, StringConstraints

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Port, Seconds

NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""Names of Kubernetes that are also names of hosts."""
CLASS_NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
Network = Annotated[str, StringConstraints(max_length=64)]


class RayClusterSection(Section):
    """A Ray cluster by KubeRay, for computers on other machines of the cluster."""

    image: str | None = Field(
        default=None,
        max_length=300,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$",
        description="The image of the nodes, with `freehold[fleet]` and bubblewrap. Without one there is no Ray cluster.",
        examples=["registry.example.com/freehold-fleet:1"],
    )
    nodes: int = Field(default=1, ge=0, le=10_000, description="How many nodes there always are.")
    max_nodes: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="How many there are at most, when there is more work. Needs the network of the API server in `private_networks`.",
        examples=[8],
    )
    cpus: float = Field(default=4, gt=0, le=1024, description="Processor cores of a node.")
    memory: Bytes = Field(default=8 * 1024**3, ge=1024**3, description="Memory of a node.")
    disk: Bytes = Field(default=20 * 1024**3, ge=1024**3, description="Disk of a node, which is gone when it ends.")
    idle: Seconds = Field(default=300, ge=10, le=86_400, description="After which time an idle node is let go.")


class KubernetesSection(Section):
    """How `freehold deploy kubernetes` writes files for a cluster."""

    namespace: str = Field(default="freehold", pattern=NAME, description="The namespace, which is created.")
    storage: Bytes = Field(
        default=40 * 1024**3,
        description="The size of the volume of the home: files, their history, and everything else that is kept.",
    )
    storage_class: str | None = Field(
        default=None,
        pattern=CLASS_NAME,
        description="The class of the volume; else the cluster's default.",
        examples=["fast"],
    )
    ingress_class: str | None = Field(
        default=None,
        pattern=CLASS_NAME,
        description="The class of the ingress; else the cluster's default.",
        examples=["nginx"],
    )
    ingress_namespace: str | None = Field(
        default=None,
        pattern=NAME,
        description="The namespace of the ingress controller. Nothing else in the cluster then reaches the control center.",
        examples=["ingress-nginx"],
    )
    certificate: str = Field(
        default="freehold-tls",
        pattern=NAME,
        description="The name of the secret of the cluster that has the certificate for gateway.public_url.",
    )
    private_networks: Annotated[tuple[Network, ...], Strict(False)] = Field(
        default=(),
        max_length=64,
        description="Networks that Freehold may reach beside the internet, such as that of a model in the cluster.",
        examples=[["10.96.0.0/12"]],
    )
    seccomp_profile: str | None = Field(
        default=None,
        max_length=200,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$",
        description="Where each node has the filter of system calls, below the kubelet's folder `seccomp`. Else there is none around Freehold.",
        examples=["profiles/freehold.json"],
    )
    fleet: RayClusterSection = Field(default=RayClusterSection(), description="A Ray cluster by KubeRay.")


class DeploySection(Section):
    """How `freehold deploy` writes files for containers."""

    http_port: Port = Field(default=80, description="The port of this machine for the control center, without Caddy.")
    http_address: str = Field(
        default="0.0.0.0",  # noqa: S104 - as before: a proxy on another machine reaches it
        pattern=r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$",
        description="The address of this machine for the control center, without Caddy. With 127.0.0.1 only a proxy on this machine reaches it, and is trusted.",
        examples=["127.0.0.1"],
    )
    ssh_port: Port = Field(default=2222, description="The port of this machine for SSH access.")
    caddy: bool = Field(
        default=False, description="Whether Caddy serves the control center by https, with certificates of its own."
    )
    caddy_image: str = Field(
        default="caddy:2.10.2",
        max_length=300,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$",
        description="The image of Caddy. A name with a digest is always the same image.",
        examples=["caddy:2.10.2", "registry.example.com/caddy@sha256:…"],
    )
    email: str | None = Field(
        default=None,
        max_length=254,
        pattern=r"^[A-Za-z0-9.!#%&'*+/=?^_|~-]+@[A-Za-z0-9.-]+$",
        description="Where the certificate authority writes when a certificate is about to expire.",
        examples=["owner@example.com"],
    )
    memory: Bytes = Field(
        default=2 * 1024**3, description="Memory of Freehold itself. The computer has computer.limits.memory."
    )
    kubernetes: KubernetesSection = Field(default=KubernetesSection(), description="Files for a Kubernetes cluster.")
