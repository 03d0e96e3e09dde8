"""How a pod is reached in a cluster, and what it reaches: service, network policy, ingress, and who scrapes it."""

from urllib.parse import urlsplit

from freehold.deploy.cluster_metadata import FLEET, LABELS, NAME, describe_metadata, name_port
from freehold.deploy.deployment import GATEWAY_PORT, Deployment
from freehold.deploy.yaml_text import YamlValue

HIDDEN_NETWORKS = {
    "0.0.0.0/0": ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
    "::/0": ("::1/128", "fc00::/7", "fe80::/10"),
}
"""The internet, without the networks of the cluster and of the cloud around it, where machines get their credentials."""


def describe_service(deployment: Deployment) -> dict[str, YamlValue]:
    """It leads to the pod also while that is not ready: the control center then says why."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": describe_metadata(deployment),
        "spec": {
            "selector": LABELS,
            "publishNotReadyAddresses": True,
            "ports": [
                {
                    "name": name_port(port.inside),
                    "port": port.outside,
                    "targetPort": port.inside,
                }
                for port in deployment.ports
            ],
        },
    }


def describe_network_policy(deployment: Deployment) -> dict[str, YamlValue]:
    """In: the control center and SSH, which ask who comes. Out: names, the internet, and what the manifest names."""
    section, manifest = deployment.section.kubernetes, deployment.manifest
    rules: list[YamlValue] = []
    for port in deployment.ports:
        rule: dict[str, YamlValue] = {"ports": [{"protocol": "TCP", "port": port.inside}]}
        if port.inside == GATEWAY_PORT and section.ingress_namespace is not None:
            rule["from"] = [
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": section.ingress_namespace}}}
            ]
        elif port.inside in (manifest.keeper.port, manifest.observe.metrics_port):
            rule["from"] = [{"namespaceSelector": {}}]
        rules.append(rule)
    names = {"ports": [{"protocol": kind, "port": 53} for kind in ("UDP", "TCP")]}
    internet = [{"ipBlock": {"cidr": all_of, "except": hidden}} for all_of, hidden in HIDDEN_NETWORKS.items()]
    private = [{"ipBlock": {"cidr": network}} for network in section.private_networks]
    fleet = [{"podSelector": {"matchLabels": {"ray.io/cluster": FLEET}}}] if section.fleet.image is not None else []
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": describe_metadata(deployment),
        "spec": {
            "podSelector": {"matchLabels": LABELS},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": rules,
            "egress": [names, {"to": [*internet, *private, *fleet]}],
        },
    }


def describe_ingress(deployment: Deployment) -> dict[str, YamlValue]:
    section, gateway = deployment.section.kubernetes, deployment.manifest.gateway
    public, preview = (urlsplit(url or "") for url in (gateway.public_url, gateway.preview_url))
    hosts = [public.hostname or "", *([f"*.{preview.hostname}"] if preview.hostname else [])]
    chosen: dict[str, YamlValue] = {} if section.ingress_class is None else {"ingressClassName": section.ingress_class}
    backend: YamlValue = {"service": {"name": NAME, "port": {"name": "gateway"}}}
    tls: dict[str, YamlValue] = (
        {"tls": [{"hosts": hosts, "secretName": section.certificate}]} if public.scheme == "https" else {}
    )
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": describe_metadata(deployment),
        "spec": {
            **chosen,
            **tls,
            "rules": [
                {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
                for host in hosts
            ],
        },
    }


def describe_monitor(deployment: Deployment) -> dict[str, YamlValue]:
    """For the operator of Prometheus. A Service that only this Freehold has is scraped."""
    port = deployment.manifest.observe.metrics_port
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": describe_metadata(deployment),
        "spec": {
            "selector": {"matchLabels": LABELS},
            "endpoints": [{"port": name_port(port), "path": "/metrics", "interval": "30s"}],
        },
    }
