"""Files for Kubernetes: one pod with everything, what keeps it, and how it is reached."""

from collections.abc import Iterator
from typing import Literal

from freehold.backup.section import BackupSection
from freehold.deploy.cluster_metadata import LABELS, NAME, describe_metadata
from freehold.deploy.cluster_network import (
    describe_ingress,
    describe_monitor,
    describe_network_policy,
    describe_service,
)
from freehold.deploy.deployment import Deployment
from freehold.deploy.engine_words import check_images
from freehold.deploy.pod import describe_claim, describe_template
from freehold.deploy.ray_cluster import describe_ray_cluster
from freehold.deploy.section import KubernetesSection
from freehold.deploy.yaml_text import YamlValue, write_documents
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_loopback

NAMESPACE_FILE, FREEHOLD_FILE, MONITOR_FILE, FLEET_FILE, PROFILE_FILE = (
    *("00-namespace.yaml", "10-freehold.yaml", "20-service-monitor.yaml", "30-ray-cluster.yaml", "freehold.seccomp"),
)
HEAD = """\
# Written by `freehold deploy kubernetes` from freehold.toml. Change the manifest and write it again; with --check it is
# compared. Kubernetes 1.33 or later.
"""
PodController = Literal["statefulset", "sandbox"]
"""What keeps the one pod. Never both: each would make a pod, and two Freeholds must not share a home."""
UNREACHABLE_KINDS = frozenset({"folder", "archive", "git"})


def write_kubernetes(deployment: Deployment, manifest: str, controller: PodController) -> dict[str, str]:
    """Every file by its name. `manifest` is the text of freehold.toml."""
    check_images(deployment)
    _refuse_what_a_pod_has_not(deployment)
    files = {
        NAMESPACE_FILE: HEAD + write_documents([_describe_namespace(deployment.section.kubernetes)]),
        FREEHOLD_FILE: HEAD + write_documents(_describe_freehold(deployment, manifest, controller)),
    }
    if not is_loopback(deployment.manifest.observe.metrics_host):
        files[MONITOR_FILE] = HEAD + write_documents([describe_monitor(deployment)])
    image = deployment.section.kubernetes.fleet.image
    if image is not None:
        files[FLEET_FILE] = HEAD + write_documents([describe_ray_cluster(deployment, image)])
    return files


def _refuse_what_a_pod_has_not(deployment: Deployment) -> None:
    if deployment.section.caddy:
        raise FreeholdError(
            "deploy.unsupported",
            "deploy.caddy is true, and in a cluster an ingress serves https",
            hint="Set it to false. The ingress is written from gateway.public_url",
        )
    backups = deployment.manifest.section(BackupSection).folder
    if backups is not None:
        raise FreeholdError(
            "deploy.unsupported",
            f"backup.to is {backups} of this machine, which a pod does not have",
            hint='Keep backups elsewhere: to = "s3://BUCKET/FOLDER" or "sftp://USER@HOST/FOLDER"',
        )
    for mount in deployment.manifest.computer.mounts:
        if mount.kind in UNREACHABLE_KINDS:
            raise FreeholdError(
                "deploy.unsupported",
                f"The mount {mount.target} is {mount.source} of this machine, which a pod does not have",
                hint="Mount it from elsewhere (s3, webdav, solid), or use two containers: freehold deploy compose",
            )


def _describe_namespace(section: KubernetesSection) -> dict[str, YamlValue]:
    """A filter of our own is the last thing that the level `baseline` wants, since Kubernetes 1.35. Without one only `privileged` takes the pod."""
    level = "privileged" if section.seccomp_profile is None else "baseline"
    labels: dict[str, YamlValue] = {**LABELS, "pod-security.kubernetes.io/enforce": level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": section.namespace, "labels": labels}}


def _describe_freehold(
    deployment: Deployment, manifest: str, controller: PodController
) -> Iterator[dict[str, YamlValue]]:
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": describe_metadata(deployment),
        "data": {"freehold.toml": manifest},
    }
    yield describe_network_policy(deployment)
    yield describe_service(deployment)
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": describe_metadata(deployment),
        # A drain waits until the owner ends the pod, unless it does not work anyway.
        "spec": {
            "maxUnavailable": 0,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": LABELS},
        },
    }
    yield _describe_stateful_set(deployment) if controller == "statefulset" else _describe_sandbox(deployment)
    if deployment.manifest.gateway.public_url:
        yield describe_ingress(deployment)


def _describe_stateful_set(deployment: Deployment) -> dict[str, YamlValue]:
    """One pod, and a new one only when the old one is known to be gone."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": describe_metadata(deployment),
        "spec": {
            "replicas": 1,
            "serviceName": NAME,
            "selector": {"matchLabels": LABELS},
            "template": describe_template(deployment),
            "volumeClaimTemplates": [describe_claim(deployment)],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
    }


def _describe_sandbox(deployment: Deployment) -> dict[str, YamlValue]:
    """The same pod, kept by the controller of agent-sandbox."""
    return {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": describe_metadata(deployment),
        "spec": {
            "operatingMode": "Running",
            "shutdownPolicy": "Retain",
            "service": False,
            "podTemplate": describe_template(deployment),
            "volumeClaimTemplates": [describe_claim(deployment)],
        },
    }
