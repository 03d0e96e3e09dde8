"""A slot that the manifest requires takes readiness away while it is lost."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway
from tests.support.condition import until
from tests.support.ports import free_ports
from tests.support.postgres import running_postgres

pytestmark = pytest.mark.shared_processes


async def answer_with_no_runs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Another Freehold, as far as it is asked here."""
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"runs": [], "cursor": null, "cost": 0.0}'
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()


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


async def test_without_the_orchestrator_no_new_work_is_accepted_until_it_is_back(tmp_path: Path) -> None:
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
            # The state is known a moment before it is told.
            told = await until(lambda: gateway.services.timeline.read(kinds=["slot.lost"]))
            assert [event.data["slot"] for event in told] == ["orchestrator"]
            session = await gateway.open_session("words")
            requests = {
                "/v1/sessions": {"agent": "builtin"},
                f"/v1/sessions/{session}/prompt": {"text": "Do it", "key": "k"},
                f"/v1/sessions/{session}/fork": {},
            }
            for path, body in requests.items():
                refused = await gateway.http.post(path, json=body, headers=headers)
                assert (refused.status_code, refused.json()["error"]["code"]) == (503, "orchestrator.unavailable")
                assert "No new work is accepted" in refused.json()["error"]["message"]
            assert gateway.context.sessions.dependencies.store.turns.find_next(session) is None
            # It comes back, and nobody has to do anything.
            async with await asyncio.start_server(answer_with_no_runs, "127.0.0.1", port):
                await until(lambda: gateway.services.slots.get("orchestrator").status.state == "ok")
                forked = await gateway.http.post(f"/v1/sessions/{session}/fork", json={}, headers=headers)
                assert forked.status_code == 200, forked.text
                await until(lambda: gateway.services.timeline.read(kinds=["slot.recovered"]))
    finally:
        del os.environ["FREEHOLD_TEST_NEIGHBOUR"]
