"""Runs over HTTP, with the scope of their slot. No agent works: the engine is scripted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.scripted_runs import ScriptedRuns, use_scripted_runs

from freehold.slots.orchestrator.contract import PERMISSIONS, RunChange, RunEvent
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport

RUNS = "/v1/slots/orchestrator/runs"
ALL = list(PERMISSIONS)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\norchestrator = "local"\n') as running:
        yield running


@pytest.fixture
async def runs(gateway: RunningGateway) -> ScriptedRuns:
    return await use_scripted_runs(gateway)


async def test_a_run_is_begun_read_ended_and_its_changes_taken(gateway: RunningGateway, runs: ScriptedRuns) -> None:
    headers = gateway.token("orchestrator", "prompt", "files")
    made = await gateway.http.post(RUNS, json={"prompt": "Do it", "folder": "site", "key": "k"}, headers=headers)
    assert made.status_code == 201
    run = made.json()
    assert (run["state"], run["title"], run["parent"]) == ("starting", "Do it", None)
    again = await gateway.http.post(RUNS, json={"prompt": "Do it", "folder": "site", "key": "k"}, headers=headers)
    assert again.json() == run
    assert runs.opened == 1
    runs.events[run["session"]] = [RunEvent(1, "t", "message", {"text": "hello"})]
    read = (await gateway.http.get(f"{RUNS}/{run['id']}/events?wait=1", headers=headers)).json()
    assert ([one["data"]["text"] for one in read["events"]], read["cursor"]) == (["hello"], 1)
    assert (await gateway.http.post(f"{RUNS}/{run['id']}/stop", json={}, headers=headers)).status_code == 200
    assert runs.ended == [run["id"]]
    runs.changes[run["id"]] = (RunChange("site/a", "added", 1, None, False, 0o100755),)
    await runs.tell(run["id"], ChildReport(changes=ChangeCounts(added=1)))
    await runs.tell(run["id"], ChildReport(state="ended", error="token:script ended it"))
    changes = (await gateway.http.get(f"{RUNS}/{run['id']}/changes", headers=headers)).json()
    assert [one["path"] for one in changes["files"]] == ["site/a"]
    assert (changes["total"], changes["files"][0]["traits"]) == (1, ["a program (mode 755)"])
    taken = await gateway.http.post(f"{RUNS}/{run['id']}/changes", json={"how": "merge"}, headers=headers)
    assert (taken.json()["outcome"], runs.merged) == ("merged", [run["id"]])
    listed = (await gateway.http.get(RUNS, headers=headers)).json()["runs"]
    assert [(one["id"], one["state"], one["outcome"]) for one in listed] == [(run["id"], "ended", "merged")]


async def test_beginning_a_run_needs_the_scope_prompt_too(gateway: RunningGateway, runs: ScriptedRuns) -> None:
    refused = await gateway.http.post(RUNS, json={"prompt": "x"}, headers=gateway.token("orchestrator"))
    assert refused.json()["error"]["code"] == "identity.wrong-scope"
    assert runs.opened == 0
    for scope in ("read", "prompt", "beads"):
        answer = await gateway.http.get(RUNS, headers=gateway.token(scope, name=f"only-{scope}"))
        assert answer.status_code == 403


async def test_a_token_without_the_scope_history_begins_no_run_from_an_older_state(
    gateway: RunningGateway, runs: ScriptedRuns
) -> None:
    """Not by a key either that was used with another token, or for the same run without the entry."""
    runs.states = {("site", 3)}
    wanted = {"prompt": "Read", "folder": "site", "entry": 3}
    plain = gateway.token("orchestrator", "prompt", "files")
    both = gateway.token("orchestrator", "prompt", "history", name="both")
    for body in (wanted, {**wanted, "key": "k"}, {**wanted, "permissions": ["history"]}):
        refused = await gateway.http.post(RUNS, json=body, headers=plain)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "identity.wrong-scope")
        assert "history" in refused.json()["error"]["hint"]
    assert (runs.opened, runs.children) == (0, {})
    made = await gateway.http.post(RUNS, json={**wanted, "key": "k"}, headers=both)
    assert (made.status_code, made.json()["entry"]) == (201, 3)
    assert [child.entry for child, _, _ in runs.children.values()] == [3]
    assert (await gateway.http.post(RUNS, json={**wanted, "key": "k"}, headers=plain)).status_code == 403
    now = await gateway.http.post(RUNS, json={"prompt": "Read", "folder": "site"}, headers=plain)
    assert (now.status_code, now.json()["entry"]) == (201, None)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"entry": "../1"}, 422),
        ({"entry": "3"}, 422),
        ({"entry": 3.5}, 422),
        ({"entry": True}, 422),
        ({"entry": -1}, 422),
        ({"entry": 0}, 422),
        ({"entry": 2**53 + 1}, 422),
        ({"entry": 10**400}, 422),
        ({"entry": [3]}, 422),
        ({"entry": 2**53}, 404),
        ({"entry": 4}, 404),
        ({"entry": 3, "folder": "other"}, 404),
        ({"entry": 3, "folder": "../site"}, 400),
        ({"entry": 3, "folder": None}, 400),
    ],
    ids=str,
)
async def test_what_is_no_state_of_history_begins_nothing(
    gateway: RunningGateway, runs: ScriptedRuns, more: dict[str, object], status: int
) -> None:
    runs.states = {("site", 3)}
    answer = await gateway.http.post(RUNS, json={"prompt": "x", "folder": "site", **more}, headers=gateway.browser())
    assert answer.status_code == status, answer.text
    assert {"code", "message", "hint"} <= answer.json()["error"].keys()
    assert (runs.opened, runs.children) == (0, {})
    assert (await gateway.http.get(RUNS, headers=gateway.browser())).json()["runs"] == []


async def test_a_token_without_the_scope_files_neither_merges_nor_reads_changes(
    gateway: RunningGateway, runs: ScriptedRuns
) -> None:
    headers = gateway.token("orchestrator", "prompt")
    run = (await gateway.http.post(RUNS, json={"prompt": "Do it"}, headers=headers)).json()["id"]
    runs.changes[run] = (RunChange("a", "added", 1, "+secret", False),)
    await runs.tell(run, ChildReport(state="done", changes=ChangeCounts(added=1)))
    for force in (False, True):
        answer = await gateway.http.post(
            f"{RUNS}/{run}/changes", json={"how": "merge", "force": force}, headers=headers
        )
        assert answer.json()["error"]["code"] == "identity.wrong-scope"
    read = await gateway.http.get(f"{RUNS}/{run}/changes", headers=headers)
    assert read.json()["error"]["code"] == "identity.wrong-scope"
    assert runs.merged == []
    heard = await gateway.http.get(f"{RUNS}/{run}/events", headers=gateway.token("orchestrator", "files", name="deaf"))
    assert heard.json()["error"]["code"] == "identity.wrong-scope"
    dropped = await gateway.http.post(f"{RUNS}/{run}/changes", json={"how": "drop"}, headers=headers)
    assert dropped.json()["outcome"] == "dropped"


async def test_a_token_neither_ends_nor_drops_what_others_began_unless_it_is_for_admins(
    gateway: RunningGateway, runs: ScriptedRuns
) -> None:
    others = gateway.token("orchestrator", "prompt", name="others")
    mine = gateway.token("orchestrator", "prompt", "files", name="mine")
    browser = gateway.browser()
    begun = [
        (await gateway.http.post(RUNS, json={"prompt": "Do it", **more}, headers=headers)).json()
        for headers, more in ((others, {"permissions": ["ask"]}), (browser, {}))
    ]
    assert [(one["began_by"], one["permissions"]) for one in begun] == [("token:others", ["ask"]), ("owner", ALL)]
    for run in (one["id"] for one in begun):
        for path, body in (("stop", {}), ("changes", {"how": "drop"}), ("changes", {"how": "merge", "force": True})):
            answer = await gateway.http.post(f"{RUNS}/{run}/{path}", json=body, headers=mine)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "orchestrator.denied")
        assert (await gateway.http.get(f"{RUNS}/{run}", headers=mine)).status_code == 200
    assert (runs.ended, runs.merged, runs.dropped) == ([], [], [])
    admin = gateway.token("orchestrator", "admin", name="boss")
    for run, headers in ((begun[0]["id"], others), (begun[1]["id"], admin), (begun[0]["id"], browser)):
        assert (await gateway.http.post(f"{RUNS}/{run}/stop", json={}, headers=headers)).status_code == 200
    wrong = await gateway.http.post(RUNS, json={"prompt": "x", "permissions": ["root"]}, headers=others)
    assert wrong.status_code == 422


async def test_a_run_that_does_not_exist_is_not_found(gateway: RunningGateway, runs: ScriptedRuns) -> None:
    headers = gateway.token("orchestrator", "files", "prompt")
    for path in ("", "/events", "/changes"):
        answer = await gateway.http.get(f"{RUNS}/none{path}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "orchestrator.not-found")
