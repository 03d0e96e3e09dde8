"""Personal documents over HTTP, as a Solid client sees them, with the scope of their slot."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.slots import SlotCaller
from freehold.slots.pods.contract import GrantAccess

PODS = "/v1/slots/pods"
DATA = f"{PODS}/data"
TEXT = {"content-type": "text/plain"}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\npods = "local"\n') as running:
        await until(lambda: running.services.slots.get("pods").status.state == "ok")
        yield running


async def test_a_document_is_written_read_and_changed_under_conditions(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    address = f"{DATA}/notes/grüße & more.txt"
    made = await gateway.http.put(address, content=b"one", headers={**headers, **TEXT, "if-none-match": "*"})
    assert made.status_code == 201
    again = await gateway.http.put(address, content=b"two", headers={**headers, **TEXT, "if-none-match": "*"})
    assert (again.status_code, again.json()["error"]["code"]) == (412, "pods.conflict")
    found = await gateway.http.get(address, headers=headers)
    assert (found.content, found.headers["content-type"]) == (b"one", "text/plain")
    etag = found.headers["etag"]
    assert etag == made.headers["etag"]
    assert (await gateway.http.get(address, headers={**headers, "if-none-match": etag})).status_code == 304
    changed = await gateway.http.put(address, content=b"two", headers={**headers, **TEXT, "if-match": etag})
    assert changed.status_code == 201
    stale = await gateway.http.put(address, content=b"three", headers={**headers, **TEXT, "if-match": etag})
    assert stale.status_code == 412
    assert (await gateway.http.head(address, headers=headers)).headers["etag"] == changed.headers["etag"]
    assert (await gateway.http.delete(address, headers=headers)).status_code == 200
    assert (await gateway.http.get(address, headers=headers)).status_code == 404


async def test_a_folder_is_an_ldp_container(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    await gateway.http.put(f"{DATA}/notes/a.txt", content=b"x", headers={**headers, **TEXT})
    made = await gateway.http.put(f"{DATA}/notes/deep/", headers=headers)
    assert made.json()["path"] == "notes/deep/"
    turtle = await gateway.http.get(f"{DATA}/notes/", headers=headers)
    assert turtle.headers["content-type"] == "text/turtle"
    assert "ldp:contains <./a.txt>" in turtle.text
    assert 'ldp#BasicContainer>; rel="type"' in turtle.headers["link"]
    graph = (await gateway.http.get(f"{DATA}/notes/", headers={**headers, "accept": "application/ld+json"})).json()
    contained = [one["@id"] for one in graph[0]["http://www.w3.org/ns/ldp#contains"]]
    assert contained == ["./a.txt", "./deep/"]
    added = await gateway.http.post(f"{DATA}/notes/", content=b"y", headers={**headers, **TEXT, "slug": "b.txt"})
    assert (added.status_code, added.headers["location"]) == (201, f"{DATA}/notes/b.txt")
    twice = await gateway.http.post(f"{DATA}/notes/", content=b"y", headers={**headers, **TEXT, "slug": "b.txt"})
    assert twice.status_code == 201
    assert twice.headers["location"].endswith("-b.txt")
    page = (await gateway.http.get(f"{PODS}/list?folder=notes&limit=2", headers=headers)).json()
    assert len(page["entries"]) == 2
    assert page["cursor"] is not None
    found = (await gateway.http.get(f"{PODS}/list?media=text/*", headers=headers)).json()
    assert {"notes/a.txt", "notes/b.txt"} <= {one["path"] for one in found["entries"]}


async def test_json_patch_is_taken_and_other_patches_are_not(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    address = f"{DATA}/c.json"
    await gateway.http.put(address, content=b'{"n": 1}', headers={**headers, "content-type": "application/json"})
    patch = json.dumps([{"op": "replace", "path": "/n", "value": 2}])
    wanted = {**headers, "content-type": "application/json-patch+json"}
    assert (await gateway.http.patch(address, content=patch, headers=wanted)).status_code == 200
    assert (await gateway.http.get(address, headers=headers)).json() == {"n": 2}
    for media in ("application/sparql-update", "text/n3", "application/merge-patch+json"):
        answer = await gateway.http.patch(address, content="x", headers={**headers, "content-type": media})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "pods.invalid")


async def test_a_document_never_acts_as_a_page_of_the_control_center(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    page = b"<script>fetch('/v1/me')</script>"
    await gateway.http.put(f"{DATA}/x.html", content=page, headers={**headers, "content-type": "text/html"})
    found = await gateway.http.get(f"{DATA}/x.html", headers=headers)
    assert found.content == page
    assert "sandbox" in found.headers["content-security-policy"]
    assert found.headers["content-disposition"] == "attachment"
    assert found.headers["x-content-type-options"] == "nosniff"


async def test_paths_out_of_the_pod_are_refused(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    for path in ("..%2f..%2fvault%2fx", "%2e%2e/vault", "a%00b", "a%5cb", "/etc/passwd"):
        answer = await gateway.http.get(f"{DATA}/{path}", headers=headers)
        assert answer.status_code in (400, 404), path


async def test_a_write_with_a_key_has_one_effect(gateway: RunningGateway) -> None:
    headers = {**gateway.token("pods"), **TEXT, "idempotency-key": "k", "if-none-match": "*"}
    first, second = [await gateway.http.put(f"{DATA}/once.txt", content=b"x", headers=headers) for _ in range(2)]
    assert first.json() == second.json()
    assert len(gateway.services.timeline.read(kinds=["pods.written"])) == 1


async def test_only_the_owner_changes_who_reaches_what(gateway: RunningGateway) -> None:
    grant = {"agent": "claude", "folder": "notes", "mode": "read"}
    refused = await gateway.http.post(f"{PODS}/grants", json=grant, headers=gateway.token("pods"))
    assert refused.status_code == 403
    owner = gateway.browser()
    made = (await gateway.http.post(f"{PODS}/grants", json=grant, headers=owner)).json()
    assert [(one["agent"], one["folder"], one["mode"]) for one in made["grants"]] == [("claude", "notes/", "read")]
    seen = (await gateway.http.get(f"{PODS}/grants", headers=gateway.token("pods", name="other"))).json()
    assert seen == made
    gone = {"agent": "claude", "folder": "notes"}
    assert (await gateway.http.post(f"{PODS}/grants/revoke", json=gone, headers=owner)).json() == {"grants": []}
    assert (await gateway.http.post(f"{PODS}/grants/revoke", json=gone, headers=owner)).status_code == 404


async def test_what_programs_read_is_told_to_the_owner(gateway: RunningGateway) -> None:
    headers = gateway.token("pods", name="backup")
    await gateway.http.put(f"{DATA}/a.txt", content=b"x", headers={**headers, **TEXT})
    await gateway.http.get(f"{DATA}/a.txt", headers=headers)
    seen = (await gateway.http.get(f"{PODS}/access", headers=gateway.browser())).json()["entries"]
    assert [(one["who"], one["act"], one["path"]) for one in seen] == [
        ("token:backup", "read", "a.txt"),
        ("token:backup", "write", "a.txt"),
    ]
    assert (await gateway.http.get(f"{PODS}/access", headers=headers)).status_code == 403


async def test_only_the_scope_of_the_slot_reaches_documents(gateway: RunningGateway) -> None:
    for scope in ("read", "files", "beads"):
        headers = gateway.token(scope, name=f"only-{scope}")
        for path in ("/data/a.txt", "/list", "/grants", "/export"):
            assert (await gateway.http.get(f"{PODS}{path}", headers=headers)).status_code == 403
        assert (await gateway.http.put(f"{DATA}/a.txt", content=b"x", headers={**headers, **TEXT})).status_code == 403


async def test_everything_goes_out_and_comes_back(gateway: RunningGateway) -> None:
    headers = gateway.token("pods")
    await gateway.http.put(f"{DATA}/a/b.txt", content=b"x", headers={**headers, **TEXT})
    records = (await gateway.http.get(f"{PODS}/export", headers=headers)).json()["records"]
    assert [one["id"] for one in records] == ["a/", "a/b.txt"]
    back = await gateway.http.post(f"{PODS}/import", json={"records": records}, headers=headers)
    assert back.json() == {"created": 0, "replaced": 0, "kept": 2}


async def test_what_a_conversation_was_granted_ends_when_it_is_deleted(gateway: RunningGateway) -> None:
    slot = gateway.services.slots.get("pods")
    kept, gone = await gateway.open_session("a"), await gateway.open_session("b")
    for session, once in ((kept, False), (gone, False), (gone, True)):
        await slot.call(GrantAccess("builtin", "notes/", "read", session=session, once=once), SlotCaller("owner"))
    headers = gateway.token("pods", "prompt", "admin")
    found = (await gateway.http.get(f"{PODS}/grants", headers=headers)).json()["grants"]
    assert sorted((one["session"], one["once"]) for one in found) == sorted(
        [(kept, False), (gone, False), (gone, True)]
    )
    assert (await gateway.http.delete(f"/v1/sessions/{gone}", headers=headers)).status_code == 200
    left = (await gateway.http.get(f"{PODS}/grants", headers=headers)).json()["grants"]
    assert [one["session"] for one in left] == [kept]
    # One that was granted nothing is deleted too.
    other = await gateway.open_session("c")
    assert (await gateway.http.delete(f"/v1/sessions/{other}", headers=headers)).status_code == 200
