"""The API matches its description, also where there is no keeper and no computer. See test_whole_api for the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, not_a_server_error
from schemathesis.core.result import Ok
from tests.attack.targets.http_api import takes_input, without_tuples
from tests.gateway.running_gateway import RunningGateway, running_gateway

from freehold.gateway.rate_limit import RateLimit

EXAMPLES = 2
CHECKED = ("response_schema_conformance", "content_type_conformance", "status_code_conformance")


async def test_no_request_gets_an_answer_that_is_not_described(tmp_path: Path) -> None:
    """Every operation, with valid and with invalid requests."""
    async with running_gateway(tmp_path) as gateway:
        unlimited = RateLimit(rate=1e9, burst=1e9)
        gateway.app._anonymous_limit = gateway.app._owner_limit = unlimited
        description = (await gateway.http.get("/v1/openapi.json", headers=gateway.token("read"))).json()
        tried = await asyncio.to_thread(_try_everything, gateway, description)
    assert tried == sum(len(operations) for operations in description["paths"].values())


def _try_everything(gateway: RunningGateway, description: dict[str, Any]) -> int:
    schema = schemathesis.openapi.from_dict(without_tuples(description))
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        _try_operation(gateway, found.ok(), schemathesis.GenerationMode.POSITIVE)
        if takes_input(found.ok()):
            _try_operation(gateway, found.ok(), schemathesis.GenerationMode.NEGATIVE)
        tried += 1
    return tried


def _try_operation(gateway: RunningGateway, operation: Any, mode: schemathesis.GenerationMode) -> None:
    checks = [not_a_server_error, *(CHECKS.get_one(name) for name in CHECKED)]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def attempt(case: Any) -> None:
        headers = gateway.browser()  # of its own: some of what is tried signs out
        response = case.call(base_url=f"http://localhost:{gateway.port}", headers=headers)
        if response.status_code == 503:  # no keeper and no computer here: said, in the one shape, and not a fault
            assert set(response.json()) <= {"error", "ready", "since", "requirements", "missing"}
            return
        case.validate_response(response, checks=checks)

    attempt()


@pytest.mark.parametrize("path", ["/v1/timeline?limit=0", "/v1/timeline?after=x", "/v1/timeline?after=" + "9" * 40])
async def test_a_wrong_query_is_named(gateway: RunningGateway, path: str) -> None:
    answer = await gateway.http.get(path, headers=gateway.token("read"))
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "request.invalid"
