"""The provider of Ray's autoscaler. It runs in Ray's own process and sandbox, and imports nothing of ours.

It has no key and starts nothing: it asks the head, which runs the owner's commands within the owner's limits.
"""

import json
import socket
from typing import Any

from ray.autoscaler.node_provider import NodeProvider
from ray.autoscaler.tags import (
    NODE_KIND_HEAD,
    NODE_KIND_WORKER,
    STATUS_UP_TO_DATE,
    TAG_RAY_LAUNCH_REQUEST,
    TAG_RAY_NODE_KIND,
    TAG_RAY_NODE_STATUS,
    TAG_RAY_USER_NODE_TYPE,
)

SOCKET = "/run/ray/machines.sock"
HEAD = "head"
REPLY_TIMEOUT = 20.0


class RayMachines(NodeProvider):
    """The id of a machine is the name of its node."""

    def __init__(self, provider_config: dict[str, Any], cluster_name: str) -> None:
        super().__init__(provider_config, cluster_name)
        self._tags: dict[str, dict[str, str]] = {}

    def non_terminated_nodes(self, tag_filters: dict[str, str]) -> list[str]:
        head = {
            TAG_RAY_NODE_KIND: NODE_KIND_HEAD,
            TAG_RAY_USER_NODE_TYPE: HEAD,
            TAG_RAY_NODE_STATUS: STATUS_UP_TO_DATE,
        }
        self._tags = {HEAD: head, **{row["name"]: _describe(row) for row in _ask({"do": "list"})["machines"]}}
        return [name for name, tags in self._tags.items() if tag_filters.items() <= tags.items()]

    def is_running(self, node_id: str) -> bool:
        return node_id in self._tags

    def is_terminated(self, node_id: str) -> bool:
        return node_id not in self._tags

    def node_tags(self, node_id: str) -> dict[str, str]:
        return self._tags.get(node_id, {})

    def set_node_tags(self, node_id: str, tags: dict[str, str]) -> None:
        """The head keeps none."""

    def internal_ip(self, node_id: str) -> str:
        return node_id

    def external_ip(self, node_id: str) -> str:
        return node_id

    def create_node_with_resources_and_labels(
        self,
        node_config: dict[str, Any],
        tags: dict[str, str],
        count: int,
        resources: dict[str, float],
        labels: dict[str, str],
    ) -> None:
        kind, request = tags[TAG_RAY_USER_NODE_TYPE], tags.get(TAG_RAY_LAUNCH_REQUEST, "")
        _ask({"do": "launch", "kind": kind, "count": count, "request": request})

    def terminate_node(self, node_id: str) -> None:
        _ask({"do": "terminate", "name": node_id})


def _describe(row: dict[str, str]) -> dict[str, str]:
    return {
        TAG_RAY_NODE_KIND: NODE_KIND_WORKER,
        TAG_RAY_USER_NODE_TYPE: row["kind"],
        TAG_RAY_NODE_STATUS: STATUS_UP_TO_DATE,
        TAG_RAY_LAUNCH_REQUEST: row["request"],
    }


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    """Raises the head's refusal: Ray tries again later."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(REPLY_TIMEOUT)
        connection.connect(SOCKET)
        with connection.makefile("rwb") as stream:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            reply: dict[str, Any] = json.loads(stream.readline())
    if "error" in reply:
        raise RuntimeError(reply["error"])
    return reply
