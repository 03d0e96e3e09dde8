"""Checks of ports and listen addresses."""

from collections.abc import Iterator
from itertools import combinations

from freehold.manifest.addresses import is_any, is_loopback, parse_ip
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value

Listener = tuple[KeyPath, KeyPath, str, int]


def _listeners(manifest: Manifest) -> list[Listener]:
    """Everything that listens on this machine: key of its host, key of its port, and both."""
    found: list[Listener] = [
        (("gateway", "host"), ("gateway", "port"), manifest.gateway.host, manifest.gateway.port),
        (("keeper", "host"), ("keeper", "port"), manifest.keeper.host, manifest.keeper.port),
        (
            ("observe", "metrics_host"),
            ("observe", "metrics_port"),
            manifest.observe.metrics_host,
            manifest.observe.metrics_port,
        ),
    ]
    for name, section in manifest.sections():
        for one in section.listen_addresses():
            found.append(((name, one.host_key), (name, one.port_key), one.host, one.port))
    return found


def _overlap(one: str, other: str) -> bool:
    if is_any(one) or is_any(other) or one.lower() == other.lower():
        return True
    return is_loopback(one) and is_loopback(other) and "localhost" in (one.lower(), other.lower())


@check("E101")
def ports_collide(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Two programs listen on the same port."""
    for (_, key, host, port), (_, other_key, other_host, other_port) in combinations(_listeners(manifest), 2):
        if port == other_port and _overlap(host, other_host):
            written = str(other_key[1]) in getattr(manifest, str(other_key[0])).model_fields_set
            yield CheckFinding(
                other_key if written else key,
                f"{show_key(key)} and {show_key(other_key)} are both {port}",
                f"Give one of them another port, such as {port + 1 if port < 65535 else port - 1}",
            )


@check("E102")
def listen_address_is_no_address(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A program listens on something that is not an address of this machine."""
    for key, _, host, _ in _listeners(manifest):
        if parse_ip(host) is None and host.lower() != "localhost":
            yield CheckFinding(
                key, f"{show_key(key)} is {show_value(host)}, which is not an IP address", 'Example: host = "127.0.0.1"'
            )


@check("W103")
def privileged_port(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A port below 1024, which only root may open, on a Freehold that is not root's."""
    for _, key, _, port in _listeners(manifest):
        if port < 1024 and not facts.is_root:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {port}, and ports below 1024 are for root",
                "Use a port above 1023 behind a reverse proxy, or allow it with sysctl net.ipv4.ip_unprivileged_port_start",
            )


@check("E104")
def metrics_on_a_public_address(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Metrics are served to the network without `[security.exceptions.public-metrics]`."""
    host = manifest.observe.metrics_host
    exception = manifest.security.exceptions.get("public-metrics")
    if not is_loopback(host) and not (exception and exception.holds_on(facts.today)):
        yield CheckFinding(
            ("observe", "metrics_host"),
            f"observe.metrics_host is {show_value(host)}: metrics tell anyone who connects what runs here",
            'Use "127.0.0.1" and let the collector come by tunnel, or grant [security.exceptions.public-metrics] with a reason',
        )
