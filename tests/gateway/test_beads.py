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


async def test_who_acts_by_a_token_is_another_holder_and_never_the_owner(gateway: RunningGateway) -> None:
    token = gateway.token("beads", name="laptop")
    first, second, owner = [{**token, "freehold-actor": one} for one in ("session:a", "session:b", "owner")]
    made = await gateway.http.post(ITEMS, json={"title": "x"}, headers=gateway.browser())
    path = f"{ITEMS}/{made.json()['id']}"
    claimed = (await gateway.http.post(f"{path}/claim", json={}, headers=first)).json()
    assert (claimed["holder"], claimed["sessions"]) == ("token:laptop/session:a", ["token:laptop/a"])
    assert (await gateway.http.post(f"{path}/claim", json={}, headers=second)).json()["error"][
        "code"
    ] == "beads.claimed"
    assert (await gateway.http.post(f"{path}/release", json={}, headers=second)).status_code == 403
    assert (await gateway.http.post(f"{path}/release", json={}, headers=owner)).json()["holder"] is None
    # The owner of this Freehold holds it now.
    await gateway.http.post(f"{path}/claim", json={}, headers=gateway.browser())
    for headers in (token, owner, {**token, "freehold-actor": "token:x/owner"}):
        assert (await gateway.http.post(f"{path}/release", json={}, headers=headers)).status_code == 403
    asked = await gateway.http.get("/v1/slots/beads/caller", headers=owner)
    assert asked.json() == {"name": "token:laptop/owner"}


async def test_the_owner_here_and_the_owner_behind_a_token_set_only_their_own_sessions_on_an_item(
    gateway: RunningGateway,
) -> None:
    token = gateway.token("beads", name="laptop")
    item = (await gateway.http.post(ITEMS, json={"title": "x"}, headers=token)).json()["id"]
    wanted = {"session": "a1"}
    assert (await gateway.http.post(f"{ITEMS}/{item}/claim", json=wanted, headers=token)).status_code == 403
    behind = {**token, "freehold-actor": "owner"}
    claimed = (await gateway.http.post(f"{ITEMS}/{item}/claim", json=wanted, headers=behind)).json()
    assert (claimed["holder"], claimed["sessions"]) == ("token:laptop/session:a1", ["token:laptop/a1"])


@pytest.mark.parametrize("actor", ["", "a b", "/owner", "owner/", "../owner", "a//owner", "x" * 201])
async def test_what_is_not_the_name_of_an_actor_is_refused(gateway: RunningGateway, actor: str) -> None:
    headers = [*gateway.token("beads").items(), ("freehold-actor", actor)]
    answer = await gateway.http.get(ITEMS, headers=headers)
    assert answer.json()["error"]["code"] == "request.invalid"


async def test_a_browser_acts_for_nobody_else(gateway: RunningGateway) -> None:
    answer = await gateway.http.get(ITEMS, headers={**gateway.browser(), "freehold-actor": "session:a"})
    assert answer.json()["error"]["code"] == "beads.denied"


async def test_a_token_stores_no_record_in_the_name_of_the_owner(gateway: RunningGateway) -> None:
    change = {"version": 1, "at": 1.0, "who": "owner", "action": "created", "fields": {"holder": "session:a"}}
    comment = {"number": 1, "at": 1.0, "author": "owner", "text": "obey"}
    own = {"version": 1, "sessions": ["s1"], "created": 1.0, "updated": 1.0, "history": [change], "comments": [comment]}
    record = {"id": "bd-1", "title": "t", "status": "in_progress", "assignee": "owner", "created_by": "owner"}
    body = {"records": [{**record, "freehold": own}, {"id": "bd-2", "title": "t", "created_by": "alice"}]}
    headers = gateway.token("beads", name="laptop")
    assert (await gateway.http.post("/v1/slots/beads/import", json=body, headers=headers)).json()["created"] == 2
    found = (await gateway.http.get(f"{ITEMS}/bd-1", headers=headers)).json()
    assert (found["bead"]["holder"], found["bead"]["created_by"]) == ("token:laptop/owner", "token:laptop/owner")
    assert found["bead"]["sessions"] == ["token:laptop/s1"]
    assert found["comments"][0]["author"] == found["history"][0]["who"] == "token:laptop/owner"
    assert found["history"][0]["fields"] == {"holder": "token:laptop/session:a"}
    assert (await gateway.http.get(f"{ITEMS}/bd-2", headers=headers)).json()["bead"]["created_by"] == "alice"
