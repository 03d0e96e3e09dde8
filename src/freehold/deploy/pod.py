"""The one pod of a cluster: Freehold in a container, and the computer sealed inside of it without any privilege."""

from freehold.computer.walls.inside import SHARED_ETC, TOP_LEVEL
from freehold.deploy.cluster_metadata import LABELS, NAME, describe_metadata, name_port
from freehold.deploy.deployment import GATEWAY_PORT, SYSTEM_FOLDER, Deployment
from freehold.deploy.yaml_text import YamlValue
from freehold.images.kinds import BRAIN_HOME

VOLUME = "/var/lib/freehold-volume"
STOP_SECONDS = 75
OWN_CPUS = 1.0
"""Processor cores of Freehold itself, beside those of the computer."""
OWN_DISK, SYSTEM_DISK = 1 << 30, 8 << 30
"""Bytes of the node's own disk: the output of the container, and the files of the image of the computer."""
# The root of a volume belongs to root, and Freehold takes only a home of its own. 00700 also removes the group bit.
PREPARE = f"mkdir -p {VOLUME}/home && chmod 00700 {VOLUME}/home"
# A volume of kind `image` would not do: no program in it can be run. What only root reads is left out.
_PATHS = " ".join([*TOP_LEVEL, "usr", "opt", *(f"etc/{name}" for name in SHARED_ETC)])
COPY_SYSTEM = (
    f'cd / && for one in {_PATHS}; do if [ -e "$one" ] || [ -L "$one" ]; then '
    'find "$one" ! -type l ! -readable -prune -o -print0; fi; done'
    f" | tar -c --null --no-recursion -T - -f - | tar -x -p --no-same-owner -C {SYSTEM_FOLDER} -f -"
    f" && test -e {SYSTEM_FOLDER}/usr/bin/python3"
)


def make_pod(deployment: Deployment) -> dict[str, YamlValue]:
    """The pod by itself, to ask a cluster whether it takes such a one."""
    pod = describe_pod(deployment)
    volumes = pod["volumes"]
    assert isinstance(volumes, list)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**describe_metadata(deployment, f"{NAME}-0"), "annotations": dict(deployment.labels)},
        "spec": {**pod, "volumes": [{"name": "home", "emptyDir": {}}, *volumes]},
    }


def describe_template(deployment: Deployment) -> dict[str, YamlValue]:
    # A change of the manifest changes the annotation, which starts the pod anew.
    return {"metadata": {"labels": LABELS, "annotations": dict(deployment.labels)}, "spec": describe_pod(deployment)}


def describe_claim(deployment: Deployment) -> dict[str, YamlValue]:
    section = deployment.section.kubernetes
    chosen: dict[str, YamlValue] = {} if section.storage_class is None else {"storageClassName": section.storage_class}
    return {
        "metadata": {"name": "home"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            **chosen,
            "resources": {"requests": {"storage": str(section.storage)}},
        },
    }


def describe_pod(deployment: Deployment) -> dict[str, YamlValue]:
    return {
        **describe_pod_walls(deployment),
        "initContainers": [
            _describe_step("prepare", deployment.brain_image, PREPARE, "home", VOLUME),
            _describe_step("system", deployment.computer_image, COPY_SYSTEM, "computer", SYSTEM_FOLDER),
        ],
        "containers": [_describe_container(deployment)],
        "volumes": [
            {"name": "manifest", "configMap": {"name": NAME}},
            {"name": "computer", "emptyDir": {"sizeLimit": str(SYSTEM_DISK)}},
            *(
                {"name": one.target.strip("/"), "emptyDir": {"medium": "Memory", "sizeLimit": str(one.size)}}
                for one in deployment.brain_memory_folders
            ),
        ],
    }


def _describe_step(name: str, image: str, script: str, volume: str, place: str) -> dict[str, YamlValue]:
    """What is done before Freehold starts, with the filter of the runtime."""
    return {
        "name": name,
        "image": image,
        "command": ["sh", "-c", script],
        "securityContext": describe_walls(),
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": str(OWN_DISK + SYSTEM_DISK)},
        },
        "volumeMounts": [{"name": volume, "mountPath": place}],
    }


def describe_walls() -> dict[str, YamlValue]:
    """The security context of every container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def describe_sealing_walls(deployment: Deployment) -> dict[str, YamlValue]:
    """Bubblewrap needs a user namespace, an unmasked /proc and calls that the runtime's own filter refuses; no privilege."""
    profile = deployment.section.kubernetes.seccomp_profile
    return {
        **describe_walls(),
        "procMount": "Unmasked",
        "seccompProfile": {"type": "Unconfined"}
        if profile is None
        else {"type": "Localhost", "localhostProfile": profile},
    }


def describe_pod_walls(deployment: Deployment) -> dict[str, YamlValue]:
    """What every pod has: users of its own, no account of the cluster, and the uid of Freehold."""
    return {
        "hostUsers": False,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": deployment.uid,
            "runAsGroup": deployment.uid,
            "fsGroup": deployment.uid,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _describe_container(deployment: Deployment) -> dict[str, YamlValue]:
    return {
        "name": NAME,
        "image": deployment.brain_image,
        "securityContext": describe_sealing_walls(deployment),
        "env": [_describe_variable(name, value) for name, value in deployment.environment.items()],
        "ports": [{"name": name_port(port.inside), "containerPort": port.inside} for port in deployment.ports],
        "startupProbe": _describe_probe("/livez", 2, 60),
        "livenessProbe": _describe_probe("/livez", 10, 6),
        "readinessProbe": _describe_probe("/ready", 10, 3),
        "resources": _describe_resources(deployment),
        "volumeMounts": [
            {"name": "home", "mountPath": BRAIN_HOME, "subPath": "home"},
            {
                "name": "manifest",
                "mountPath": f"{BRAIN_HOME}/freehold.toml",
                "subPath": "freehold.toml",
                "readOnly": True,
            },
            {"name": "computer", "mountPath": SYSTEM_FOLDER, "readOnly": True},
            *({"name": one.target.strip("/"), "mountPath": one.target} for one in deployment.brain_memory_folders),
        ],
    }


def _describe_variable(name: str, value: str | None) -> dict[str, YamlValue]:
    """One without a value comes from the secret `freehold`, if it is there. `$(…)` would be read as a variable."""
    if value is not None:
        return {"name": name, "value": value.replace("$", "$$")}
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": NAME, "key": name, "optional": True}}}


def _describe_probe(path: str, period: int, failures: int) -> dict[str, YamlValue]:
    """The gateway answers to its own names only, and a probe would give the address of the pod."""
    headers: YamlValue = [{"name": "Host", "value": f"127.0.0.1:{GATEWAY_PORT}"}]
    return {
        "httpGet": {"path": path, "port": "gateway", "httpHeaders": headers},
        "periodSeconds": period,
        "timeoutSeconds": 10,
        "failureThreshold": failures,
    }


def _describe_resources(deployment: Deployment) -> dict[str, YamlValue]:
    """The limits of the computer and of Freehold itself together: they are in one container."""
    limits = deployment.manifest.computer.limits
    return {
        "requests": {"cpu": "500m", "memory": str(deployment.section.memory), "ephemeral-storage": "64Mi"},
        "limits": {
            "cpu": f"{limits.cpus + OWN_CPUS:g}",
            "memory": str(deployment.section.memory + limits.memory),
            "ephemeral-storage": str(OWN_DISK + SYSTEM_DISK),
        },
    }
