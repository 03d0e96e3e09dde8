"""Work items over HTTP, with the scope of their slot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.agents.sessions.rows import SessionRow
from freehold.errors import FreeholdError

ITEMS = "/v1/slots/beads/items"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\nbeads = "local"\n') as running:
        await until(lambda: running.services.slots.beads.status.state == "ok")
        yield running


async def test_an_item_goes_from_open_to_closed(gateway: RunningGateway) -> None:
    headers = gateway.token("beads")
    made = await gateway.http.post(ITEMS, json={"title": "Mend the roof", "labels": ["house"]}, headers=headers)
    assert made.status_code == 201
    item = made.json()
    path = f"{ITEMS}/{item['id']}"
    assert (item["status"], item["created_by"]) == ("open", "token:script")
    assert (await gateway.http.post(f"{path}/claim", json={}, headers=headers)).json()["holder"] == "token:script"
    other = gateway.token("beads", name="other")
    refused = await gateway.http.post(f"{path}/claim", json={}, headers=other)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "beads.claimed")
    changed = await gateway.http.patch(path, json={"priority": 0, "version": 2}, headers=headers)
    assert changed.json()["priority"] == 0
    assert (await gateway.http.post(f"{path}/comments", json={"text": "so far"}, headers=headers)).status_code == 201
    closed = await gateway.http.post(f"{path}/close", json={"reason": "done"}, headers=headers)
    assert closed.json()["status"] == "closed"
    details = (await gateway.http.get(path, headers=headers)).json()
    assert [one["action"] for one in details["history"]] == ["created", "claimed", "updated", "commented", "closed"]
    assert (await gateway.http.get(f"{ITEMS}?status=closed", headers=headers)).json()["beads"] == [details["bead"]]


async def test_the_same_key_makes_one_item(gateway: RunningGateway) -> None:
    headers = gateway.token("beads")
    first, second = [
        (await gateway.http.post(ITEMS, json={"title": "once", "key": "k"}, headers=headers)).json() for _ in range(2)
    ]
    assert first == second
    assert len((await gateway.http.get(ITEMS, headers=headers)).json()["beads"]) == 1


async def test_only_the_scope_of_the_slot_reaches_it(gateway: RunningGateway) -> None:
    for scope in ("read", "prompt", "files", "terminal", "history"):
        headers = gateway.token(scope, name=f"only-{scope}")
        assert (await gateway.http.get(ITEMS, headers=headers)).status_code == 403
        assert (await gateway.http.post(ITEMS, json={"title": "x"}, headers=headers)).status_code == 403


async def test_setting_an_agent_on_an_item_needs_the_scope_prompt_too(gateway: RunningGateway) -> None:
    headers = gateway.token("beads")
    item = (await gateway.http.post(ITEMS, json={"title": "x"}, headers=headers)).json()["id"]
    refused = await gateway.http.post(f"{ITEMS}/{item}/work", json={}, headers=headers)
    assert refused.json()["error"]["code"] == "identity.wrong-scope"


async def test_a_start_that_is_refused_leaves_neither_a_session_nor_a_held_item(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = gateway.context.sessions
    await sessions.ready.wait()
    store = sessions.dependencies.store

    async def open_session(agent: str | None, title: str, model: str | None, *, who: str) -> SessionRow:
        return store.create("builtin", title, model, who=who)

    async def refuse(*given: object, **more: object) -> None:
        raise FreeholdError("models.stopped", "The kill switch is on")

    monkeypatch.setattr(sessions, "open", open_session)
    monkeypatch.setattr(sessions, "prompt", refuse)
    headers = gateway.token("beads", "prompt", "read")
    item = (await gateway.http.post(ITEMS, json={"title": "x"}, headers=headers)).json()["id"]
    refused = await gateway.http.post(f"{ITEMS}/{item}/work", json={}, headers=headers)
    assert refused.json()["error"]["code"] == "models.stopped"
    bead = (await gateway.http.get(f"{ITEMS}/{item}", headers=headers)).json()["bead"]
    assert (bead["status"], bead["holder"]) == ("open", None)
    assert (await gateway.http.get("/v1/sessions", headers=headers)).json()["sessions"] == []


async def test_records_go_out_and_come_back(gateway: RunningGateway) -> None:
    headers = gateway.token("beads")
    for title in ("a", "b", "c"):
        await gateway.http.post(ITEMS, json={"title": title}, headers=headers)
    records, cursor = [], ""
    while cursor is not None:
        address = f"/v1/slots/beads/export?limit=2{f'&cursor={cursor}' if cursor else ''}"
        page = (await gateway.http.get(address, headers=headers)).json()
        records += page["records"]
        cursor = page["cursor"]
    assert {one["title"] for one in records} == {"a", "b", "c"}
    back = await gateway.http.post("/v1/slots/beads/import", json={"records": records}, headers=headers)
    assert back.json() == {"created": 0, "replaced": 0, "kept": 3}


async def test_a_slot_that_is_off_says_how_to_switch_it_on(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        answer = await gateway.http.get(ITEMS, headers=gateway.token("beads"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "beads.disabled")
        assert 'slots.beads = "local"' in answer.json()["error"]["hint"]


async def test_slots_and_the_versions_of_their_contracts_are_told(gateway: RunningGateway) -> None:
    headers = gateway.token("read")
    slots = {one["name"]: one for one in (await gateway.http.get("/v1/slots", headers=headers)).json()}
    assert (slots["beads"]["state"], slots["beads"]["implementation"]) == ("ok", "local")
    assert (slots["memory"]["state"], slots["memory"]["contract"]) == ("off", 1)
    assert {one["privacy"] for one in slots.values()} == {"off"}
    meta = (await gateway.http.get("/v1/meta", headers=headers)).json()
    assert meta["slots"]["beads"] == "local"
    assert meta["slot_contracts"]["beads"] == 1
