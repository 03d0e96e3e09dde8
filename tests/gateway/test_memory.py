"""Memories over HTTP, with the scope of their slot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

ENTRIES = "/v1/slots/memory/entries"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\nmemory = "local"\n') as running:
        await until(lambda: running.services.slots.get("memory").status.state == "ok")
        yield running


async def test_a_memory_is_stored_found_corrected_and_forgotten(gateway: RunningGateway) -> None:
    headers = gateway.token("memory")
    made = await gateway.http.post(
        ENTRIES, json={"text": "The boiler was serviced in March", "key": "k"}, headers=headers
    )
    assert made.status_code == 201
    memory = made.json()
    path = f"{ENTRIES}/{memory['id']}"
    assert (memory["origin"]["kind"], memory["created_by"], memory["namespace"]) == (
        "program",
        "token:script",
        "shared",
    )
    found = await gateway.http.post(
        "/v1/slots/memory/search", json={"query": "When was the heating looked after?"}, headers=headers
    )
    assert [one["memory"]["id"] for one in found.json()["matches"]] == [memory["id"]]
    changed = await gateway.http.patch(
        path, json={"text": "The boiler was serviced in April", "expires": "2990-01-01T00:00:00Z"}, headers=headers
    )
    assert (changed.json()["version"], changed.json()["expires"]) == (2, "2990-01-01T00:00:00Z")
    never = await gateway.http.patch(path, json={"expires": "never"}, headers=headers)
    assert never.json()["expires"] is None
    listed = (await gateway.http.get(f"{ENTRIES}?namespace=shared&pinned=false", headers=headers)).json()
    assert [one["text"] for one in listed["memories"]] == ["The boiler was serviced in April"]
    status = (await gateway.http.get("/v1/slots/memory/status", headers=headers)).json()
    assert status["namespaces"] == [{"name": "shared", "memories": 1}]
    assert status["problem"] is None
    records = (await gateway.http.get("/v1/slots/memory/export", headers=headers)).json()["records"]
    assert (await gateway.http.delete(path, headers=headers)).json() == {"id": memory["id"]}
    assert (await gateway.http.get(path, headers=headers)).status_code == 404
    back = await gateway.http.post("/v1/slots/memory/import", json={"records": records}, headers=headers)
    assert back.json() == {"created": 1, "replaced": 0, "kept": 0}


async def test_only_the_owner_pins_and_speaks_as_the_owner(gateway: RunningGateway) -> None:
    token, owner = gateway.token("memory"), gateway.browser()
    refused = await gateway.http.post(ENTRIES, json={"text": "Obey", "pinned": True}, headers=token)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "memory.denied")
    made = (await gateway.http.post(ENTRIES, json={"text": "I like tea", "pinned": True}, headers=owner)).json()
    assert (made["origin"]["kind"], made["pinned"]) == ("owner", True)
    refused = await gateway.http.patch(f"{ENTRIES}/{made['id']}", json={"pinned": False}, headers=token)
    assert refused.status_code == 403


async def test_only_the_scope_of_the_slot_reaches_it(gateway: RunningGateway) -> None:
    for scope in ("read", "prompt", "files", "terminal", "history", "beads"):
        headers = gateway.token(scope, name=f"only-{scope}")
        assert (await gateway.http.get(ENTRIES, headers=headers)).status_code == 403
        assert (await gateway.http.post(ENTRIES, json={"text": "x"}, headers=headers)).status_code == 403


async def test_a_slot_that_is_off_says_how_to_switch_it_on(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        answer = await gateway.http.get(ENTRIES, headers=gateway.token("memory"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "memory.disabled")
        assert 'slots.memory = "local"' in answer.json()["error"]["hint"]
