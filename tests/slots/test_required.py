"""A slot that the manifest requires takes readiness away while it is lost."""

import os
from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway
from tests.support.condition import until
from tests.support.ports import free_ports
from tests.support.postgres import running_postgres

pytestmark = pytest.mark.shared_processes


async def test_a_required_slot_that_is_lost_takes_readiness_away_with_its_name(tmp_path: Path) -> None:
    with running_postgres() as server:
        settings = f'[slots.beads.settings]\nurl = "{server.url}"\n'
        manifest = f'[slots.beads]\nmode = "external"\nrequired = true\n{settings}'
        async with running_gateway(tmp_path, manifest) as gateway:
            headers = gateway.token("read", "beads")

            async def missing() -> set[str]:
                answer = await gateway.http.get("/ready", headers=headers)
                return {one["name"] for one in answer.json()["missing"]}

            async def state() -> str:
                parts = (await gateway.http.get("/health", headers=headers)).json()["components"]
                return next(str(one["state"]) for one in parts if one["name"] == "slot.beads")

            await until(lambda: gateway.services.slots.beads.status.state == "ok")
            assert "slot.beads" not in await missing()
            server.kill()
            assert "slot.beads" in await missing()
            assert await state() == "degraded"
            lost = await gateway.http.get("/v1/slots/beads/items", headers=headers)
            assert (lost.status_code, lost.json()["error"]["code"]) == (503, "beads.unavailable")
            assert (await gateway.http.get("/v1/timeline", headers=headers)).status_code == 200
            server.start()
            await until(lambda: gateway.services.slots.beads.status.state == "ok")
            assert "slot.beads" not in await missing()
            assert await state() == "ok"


async def test_without_the_orchestrator_no_run_begins_and_everything_else_goes_on(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = (
        f'[slots.orchestrator.settings]\nurl = "http://127.0.0.1:{port}"\ntoken = "env:FREEHOLD_TEST_NEIGHBOUR"\n'
    )
    manifest = f'[slots.orchestrator]\nmode = "external"\nrequired = true\n{settings}'
    os.environ["FREEHOLD_TEST_NEIGHBOUR"] = "a-token"
    try:
        async with running_gateway(tmp_path, manifest) as gateway:
            headers = gateway.token("read", "orchestrator", "prompt")
            await until(lambda: gateway.services.slots.get("orchestrator").status.state == "unavailable")
            refused = await gateway.http.post("/v1/slots/orchestrator/runs", json={"prompt": "x"}, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "orchestrator.unavailable")
            missing = (await gateway.http.get("/ready", headers=headers)).json()["missing"]
            assert "slot.orchestrator" in {one["name"] for one in missing}
            for path in ("/v1/sessions", "/v1/timeline", "/health"):
                assert (await gateway.http.get(path, headers=headers)).status_code == 200
            told = gateway.services.timeline.read(kinds=["slot.lost"])
            assert [event.data["slot"] for event in told] == ["orchestrator"]
    finally:
        del os.environ["FREEHOLD_TEST_NEIGHBOUR"]
