"""What every object of a cluster has: a name, a namespace and labels."""

from freehold.deploy.deployment import GATEWAY_PORT, SSH_PORT, Deployment
from freehold.deploy.yaml_text import YamlValue

NAME = "freehold"
FLEET = f"{NAME}-fleet"
"""The Ray cluster, and the secret with its token."""
LABELS: dict[str, YamlValue] = {"app.kubernetes.io/name": NAME}
PORT_NAMES = {GATEWAY_PORT: "gateway", SSH_PORT: "ssh"}


def describe_metadata(deployment: Deployment, name: str = NAME) -> dict[str, YamlValue]:
    return {"name": name, "namespace": deployment.section.kubernetes.namespace, "labels": LABELS}


def name_port(port: int) -> str:
    return PORT_NAMES.get(port, f"port-{port}")
