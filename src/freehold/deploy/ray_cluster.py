"""A Ray cluster by KubeRay: a head that runs nothing, and nodes in which computers can be sealed without privilege."""

from freehold.deploy.cluster_metadata import FLEET, LABELS, describe_metadata
from freehold.deploy.deployment import Deployment
from freehold.deploy.pod import describe_pod_walls, describe_sealing_walls, describe_walls
from freehold.deploy.section import RayClusterSection
from freehold.deploy.yaml_text import YamlValue
from freehold.errors import FreeholdError

RAY_VERSION = "2.60.0"
GROUP = "computers"
HEAD_CPUS, HEAD_MEMORY, HEAD_DISK = "1", 2 << 30, 4 << 30
OBJECT_STORE = 80_000_000
"""Bytes of Ray's own store in memory. Computers do not use it."""
HEALTH = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""A silent node is dead after about 5 s, and nothing is told to the makers of Ray."""


def describe_ray_cluster(deployment: Deployment, image: str) -> dict[str, YamlValue]:
    """Nobody reaches it without the token of a secret; everything is encrypted; only its own pods and Freehold reach it.

    KubeRay refuses the whole object when it cannot do one of these. Raises `deploy.unsupported`.
    """
    section = deployment.section.kubernetes
    is_growing = section.fleet.max_nodes is not None and section.fleet.max_nodes > section.fleet.nodes
    if is_growing and not section.private_networks:
        raise FreeholdError(
            "deploy.unsupported",
            "deploy.kubernetes.fleet.max_nodes lets the fleet grow, and nothing of it may reach the API server",
            hint="Name its network in deploy.kubernetes.private_networks, or leave max_nodes out",
        )
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        # Its pods are none of Freehold's own: neither its service nor its policy may take them for one.
        "metadata": {**describe_metadata(deployment, FLEET), "labels": {"app.kubernetes.io/name": FLEET}},
        "spec": {
            "rayVersion": RAY_VERSION,
            "authOptions": {"mode": "token", "secretName": FLEET},
            "tlsOptions": {"enabled": True},
            "networkPolicy": _describe_network_policy(section.private_networks if is_growing else ()),
            "enableInTreeAutoscaling": is_growing,
            **(_describe_growth(section.fleet) if is_growing else {}),
            "headGroupSpec": _describe_head(deployment, image, is_growing),
            "workerGroupSpecs": [_describe_nodes(deployment, image)],
        },
    }


def _describe_growth(fleet: RayClusterSection) -> dict[str, YamlValue]:
    options: dict[str, YamlValue] = {
        "idleTimeoutSeconds": int(fleet.idle),
        "upscalingMode": "Default",
        "securityContext": describe_walls(),
    }
    return {"autoscalerOptions": options}


def _describe_head(deployment: Deployment, image: str, is_growing: bool) -> dict[str, YamlValue]:
    """It places computers and has none. The page of Ray is for the pod itself only: it has its own way in."""
    container = _describe_container("ray-head", image, HEAD_CPUS, HEAD_MEMORY, HEAD_DISK, describe_walls())
    start = {"num-cpus": "0", "dashboard-host": "127.0.0.1", "object-store-memory": str(OBJECT_STORE)}
    template = _describe_template(deployment, container, HEAD_DISK, has_account=is_growing)
    return {"rayStartParams": start, "template": template}


def _describe_nodes(deployment: Deployment, image: str) -> dict[str, YamlValue]:
    fleet = deployment.section.kubernetes.fleet
    amounts = (f"{fleet.cpus:g}", fleet.memory, fleet.disk)
    container = _describe_container("ray-worker", image, *amounts, describe_sealing_walls(deployment))
    return {
        "groupName": GROUP,
        "replicas": fleet.nodes,
        "minReplicas": fleet.nodes,
        "maxReplicas": max(fleet.nodes, fleet.max_nodes or 0, 1),
        "rayStartParams": {"object-store-memory": str(OBJECT_STORE)},
        "template": _describe_template(deployment, container, fleet.disk),
    }


def _describe_network_policy(networks: tuple[str, ...]) -> dict[str, YamlValue]:
    """Its pods reach each other in any case. Only Freehold comes in, and nothing goes out but questions for names.

    `networks` is where the head finds the API server, if it asks for nodes.
    """
    freehold: YamlValue = {"from": [{"podSelector": {"matchLabels": LABELS}}]}
    names: YamlValue = {"ports": [{"protocol": kind, "port": 53} for kind in ("UDP", "TCP")]}
    server: list[YamlValue] = [{"to": [{"ipBlock": {"cidr": network}} for network in networks]}] if networks else []
    return {
        "mode": "DenyAll",
        "head": {"ingressRules": [freehold], "egressRules": [names, *server]},
        "worker": {"ingressRules": [freehold], "egressRules": [names]},
    }


def _describe_template(
    deployment: Deployment, container: dict[str, YamlValue], disk: int, *, has_account: bool = False
) -> dict[str, YamlValue]:
    """`has_account`: the autoscaler in the pod of the head asks the cluster for nodes, with an account of KubeRay's."""
    pod = describe_pod_walls(deployment)
    if has_account:
        del pod["automountServiceAccountToken"]
    volumes: YamlValue = [{"name": "temporary", "emptyDir": {"sizeLimit": str(disk)}}]
    return {"spec": {**pod, "containers": [container], "volumes": volumes}}


def _describe_container(
    name: str, image: str, cpus: str, memory: int, disk: int, walls: dict[str, YamlValue]
) -> dict[str, YamlValue]:
    """Requests and limits are the same: what Ray counts for placing computers is really there."""
    amounts: dict[str, YamlValue] = {"cpu": cpus, "memory": str(memory), "ephemeral-storage": str(disk)}
    return {
        "name": name,
        "image": image,
        "securityContext": walls,
        "env": [{"name": variable, "value": value} for variable, value in HEALTH.items()],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "volumeMounts": [{"name": "temporary", "mountPath": "/tmp"}],  # noqa: S108 - of the container
    }
