"""The index of an ACP registry is read through egress when the owner asks, and by nobody else."""

from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import until

from freehold.agents.catalogue.acp_registry import RegistryAgent
from freehold.errors import FreeholdError
from freehold.gateway.routes import agents

ADDRESS = {"url": "https://registry.example/registry.json"}


def has_egress(gateway: RunningGateway) -> bool:
    """It starts beside the gateway, and may be ready a moment after it."""
    try:
        return gateway.services.egress is not None
    except FreeholdError:
        return False


async def test_the_owner_reads_an_index_and_a_program_without_the_scope_does_not(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, str]] = []

    async def fetch(egress: Any, url: str, *, who: str) -> list[RegistryAgent]:
        asked.append((egress, url))
        return [RegistryAgent("alpha", "Alpha", "1.2.3", "MIT", "Does alpha.", "npm:alpha@1.2.3", "alpha", ("--acp",))]

    monkeypatch.setattr(agents, "fetch_registry", fetch)
    await until(lambda: has_egress(gateway))
    refused = await gateway.http.post("/v1/agents/registry", json=ADDRESS, headers=gateway.token("read", name="reader"))
    assert refused.status_code == 403
    assert asked == []
    answer = await gateway.http.post("/v1/agents/registry", json=ADDRESS, headers=gateway.token("admin"))
    (found,) = answer.json()
    assert (found["version"], found["license"], found["package"]) == ("1.2.3", "MIT", "npm:alpha@1.2.3")
    assert asked == [(gateway.services.egress, ADDRESS["url"])]


async def test_an_address_without_tls_is_refused(gateway: RunningGateway) -> None:
    await until(lambda: has_egress(gateway))
    body = {"url": "http://registry.example/registry.json"}
    answer = await gateway.http.post("/v1/agents/registry", json=body, headers=gateway.token("admin"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "registry.bad-address")
