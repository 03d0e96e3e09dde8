"""`/v1/routines` and `/v1/hooks`: scopes, dry runs, run now, and signed requests from outside."""

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.identity.tokens import Scope
from freehold.routines.run_changes import RunEnd, insert_run
from freehold.routines.service import RoutineService
from freehold.routines.webhook import make_secret
from freehold.slots.events.webhook import sign

pytestmark = pytest.mark.asyncio(loop_scope="module")
MANIFEST = '[routines.morning]\ncron = "0 7 * * *"\nzone = "Europe/Berlin"\nprompt = "Report."\n'
MANIFEST += '[routines.deploy]\nwebhook = true\nprompt = "Look at this."\n'
HOOK = {"webhook": True, "prompt": "Look at this.", "pause_after": 100}
WORDS = "the words of a conversation"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path_factory.mktemp("home"), MANIFEST) as running:
        yield running


@pytest.fixture(scope="module")
def owner(gateway: RunningGateway) -> dict[str, str]:
    return gateway.browser()


async def call(gateway: RunningGateway, headers: dict[str, str], method: str, path: str, **body: Any) -> Any:
    content = json.dumps(body) if method == "POST" else None
    given = {**headers, "content-type": "application/json"}
    answer = await gateway.http.request(method, f"/v1/routines{path}", headers=given, content=content)
    return answer.json()


async def test_a_routine_of_the_manifest_is_listed_and_only_changed_there(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    found = (await call(gateway, owner, "GET", ""))["routines"]
    assert [(one["name"], one["source"], one["trigger"], one["work"]) for one in found] == [
        ("deploy", "manifest", "webhook", "prompt"),
        ("morning", "manifest", "cron", "prompt"),
    ]
    assert found[1]["settings"] == {"cron": "0 7 * * *", "zone": "Europe/Berlin", "prompt": "Report."}
    assert (await call(gateway, owner, "DELETE", "/morning"))["error"]["code"] == "routine.conflict"
    changed = await call(gateway, owner, "POST", "", name="morning", routine=HOOK, replace=True)
    assert changed["error"]["code"] == "routine.exists"
    assert (await call(gateway, owner, "POST", "/morning/pause"))["state"] == "paused"
    assert (await call(gateway, owner, "POST", "/morning/resume"))["state"] == "on"


async def test_a_dry_run_shows_the_next_ten_times(gateway: RunningGateway, owner: dict[str, str]) -> None:
    routine = {"cron": "0 7 * * *", "zone": "Europe/Berlin", "prompt": "x"}
    found = await call(gateway, owner, "POST", "/plan", routine=routine)
    assert (len(found["times"]), found["zone"]) == (10, "Europe/Berlin")
    wrong = await call(gateway, owner, "POST", "/plan", routine={"cron": "0 25 * * *", "prompt": "x"})
    assert wrong["error"]["code"] == "routine.bad-value"
    assert (await call(gateway, owner, "POST", "/plan", routine=HOOK))["times"] == []


async def test_a_token_adds_only_work_that_it_may_do_itself(gateway: RunningGateway) -> None:
    prompt, command = {"every": "1h", "prompt": "x"}, {"every": "1h", "command": "id"}
    none = gateway.token("routines", name="none")
    prompts = gateway.token("routines", "prompt", name="prompts")
    terminals = gateway.token("routines", "terminal", name="terminals")
    outcomes = {
        (who, what): (await call(gateway, headers, "POST", "", name=f"{who}-{what}", routine=routine)).get("name")
        for who, headers in (("none", none), ("prompts", prompts), ("terminals", terminals))
        for what, routine in (("prompt", prompt), ("command", command))
    }
    assert {key for key, name in outcomes.items() if name} == {("prompts", "prompt"), ("terminals", "command")}
    refused = await call(gateway, prompts, "POST", "/terminals-command/run")
    assert refused["error"]["code"] == "identity.wrong-scope"
    assert (await call(gateway, none, "POST", "/terminals-command/pause"))["state"] == "paused"
    for name in ("prompts-prompt", "terminals-command"):
        assert (await call(gateway, none, "DELETE", f"/{name}")) == {"name": name}


async def test_run_now_begins_a_run_and_its_failure_is_in_the_strip(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    """This gateway has no computer: the command cannot run, and that is said."""
    await call(gateway, owner, "POST", "", name="now", routine={"every": "1h", "command": "true"})
    run = await call(gateway, owner, "POST", "/now/run", text="hello")
    assert (run["state"], run["data"]) == ("due", {"text": "hello"})

    async def ended() -> Any:
        found = await call(gateway, owner, "GET", f"/now/runs/{run['id']}")
        return found if found["finished"] else None

    found = await until(ended)
    assert found["state"] == "failed"
    shown = await call(gateway, owner, "GET", "/now")
    assert [mark["state"] for mark in shown["recent"]] == ["failed"]
    assert (shown["last"]["error"], shown["failures"]) == (found["error"], 1)
    page = await call(gateway, owner, "GET", "/now/runs?limit=1")
    assert ([one["id"] for one in page["runs"]], page["cursor"]) == ([run["id"]], None)
    assert (await call(gateway, owner, "GET", f"/morning/runs/{run['id']}"))["error"]["code"] == "routine.run.not-found"
    assert (await call(gateway, owner, "POST", f"/now/runs/{run['id']}/stop"))["state"] == "failed"


# Words


def end_run(gateway: RunningGateway, name: str, work: str) -> str:
    """A run of a routine has said the words. Returns its id."""
    service = gateway.context.service(RoutineService)
    routine, far = service.routines.get(name), time.time() + 86_400
    with service.routines.timeline.transaction() as tx:
        id = insert_run(tx, routine, f"manual:{work}", far, far, {"text": WORDS})
        tx.execute("UPDATE routines_run SET work = ? WHERE id = ?", (work, id))
    assert id is not None
    service.runs.end(id, RunEnd("failed", WORDS, WORDS))
    return id


async def test_what_a_run_said_is_read_only_by_who_may_read_that_elsewhere(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    """An agent's words with the scope prompt, a command's also with terminal. How it went is seen without them."""
    tokens = {
        "seer": gateway.token("routines", name="seer"),
        "runner": gateway.token("routines", "terminal", name="runner"),
        "prompter": gateway.token("routines", "prompt", name="prompter"),
    }
    found = set()
    for work in ("prompt", "checklist", "command"):
        name = f"said-{work}"
        given = {"every": "1h", work: "x", "pause_after": 1}
        await call(gateway, owner, "POST", "", name=name, routine=given)
        id = end_run(gateway, name, work)
        for who, headers in tokens.items():
            paths = ("?limit=200", f"/{name}", f"/{name}/runs", f"/{name}/runs/{id}")
            shown = [json.dumps(await call(gateway, headers, "GET", path)) for path in paths]
            shown.append(json.dumps(await call(gateway, headers, "POST", f"/{name}/runs/{id}/stop")))
            assert all('"failed"' in one for one in shown)
            counted = [one.count(WORDS) for one in shown]
            if any(counted):
                found.add((who, work))
                # Two are of the run. The routine was paused, and tells why.
                assert counted[1:] == [3, 2, 3, 3]
        await call(gateway, owner, "DELETE", f"/{name}")
    assert found == {("runner", "command"), ("prompter", "prompt"), ("prompter", "checklist"), ("prompter", "command")}


async def test_a_token_that_only_reads_sees_no_words_of_runs_and_workflows_in_the_timeline(
    gateway: RunningGateway,
) -> None:
    timeline = gateway.services.timeline
    run = {"routine": "morning", "run": "r1", "session": "s1", "turn": 3, "quiet": False, "cost": 0.5}
    told: list[tuple[str, dict[str, Any]]] = [
        ("routine.run_done", {**run, "result": WORDS, "error": None}),
        ("routine.run_failed", {**run, "error": WORDS}),
        ("routine.paused", {"routine": "morning", "reason": WORDS}),
        ("workflow.asked", {"workflow": "w1", "step": "2", "question": WORDS, "choices": [WORDS], "number": 7}),
        ("workflow.done", {"workflow": "w1", "file": f"{WORDS}.py", "run": None, "quiet": False, "result": WORDS}),
    ]
    first = timeline.append(*told[0])
    for kind, data in told[1:]:
        timeline.append(kind, data)

    async def read(*scopes: Scope) -> list[dict[str, Any]]:
        headers = gateway.token(*scopes, name="-".join(("timeline", *scopes)))
        answer = await gateway.http.get(f"/v1/timeline?after={first.seq - 1}", headers=headers)
        return [one["data"] for one in answer.json()["events"]][: len(told)]

    assert await read("read", "prompt") == [data for _, data in told]
    seen = await read("read")
    assert WORDS not in json.dumps(seen)
    assert seen[0] == {**run, "error": None}
    assert seen[3] == {"workflow": "w1", "step": "2", "number": 7}


# Webhooks


class Hook:
    """A sender that knows the secret of one routine."""

    def __init__(self, gateway: RunningGateway, name: str, secret: str) -> None:
        self.gateway, self.name, self.secret = gateway, name, secret

    async def send(
        self,
        id: str = "msg_1",
        body: bytes = b'{"a": 1}',
        *,
        at: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        moment = int(time.time() if at is None else at)
        signature = sign(base64.b64decode(self.secret.removeprefix("whsec_")), id, moment, body)
        given = {"webhook-id": id, "webhook-timestamp": str(moment), "webhook-signature": signature, **(headers or {})}
        answer = await self.gateway.http.post(f"/v1/hooks/{self.name}", content=body, headers=given)
        return answer.status_code, answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hook(gateway: RunningGateway, owner: dict[str, str]) -> Hook:
    await call(gateway, owner, "POST", "", name="hook", routine={**HOOK, "overlap": "queue"})
    made = await call(gateway, owner, "POST", "/hook/webhook")
    assert made["url"].endswith("/v1/hooks/hook")
    return Hook(gateway, "hook", made["secret"])


async def test_a_signed_request_begins_a_run_with_its_body_as_data(
    gateway: RunningGateway, owner: dict[str, str], hook: Hook
) -> None:
    status, answer = await hook.send("msg_first", json.dumps({"title": "a"}).encode())
    assert status == 202
    run = await call(gateway, owner, "GET", f"/hook/runs/{answer['run']}")
    assert run["data"] == {"id": "msg_first", "body": {"title": "a"}}
    _, text = await hook.send("msg_text", b"\xff plain [")
    assert (await call(gateway, owner, "GET", f"/hook/runs/{text['run']}"))["data"]["body"] == "\ufffd plain ["


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"a": "\\ud800"}', {"a": "?"}),
        (b'{"a": NaN}', '{"a": NaN}'),
        (b"1e999", "1e999"),
        (b"[" * 10_000, "[" * 10_000),
        (b"9" * 5_000, "9" * 5_000),
        (b'"\\u0000"', "\0"),
    ],
    ids=["half", "nan", "infinite", "deep", "long", "zero"],
)
async def test_a_body_that_is_hardly_json_harms_nothing(
    gateway: RunningGateway, owner: dict[str, str], hook: Hook, body: bytes, shown: object
) -> None:
    status, answer = await hook.send(f"msg_odd_{len(body)}_{body[:6].hex()}", body)
    assert status == 202
    assert (await call(gateway, owner, "GET", f"/hook/runs/{answer['run']}"))["data"]["body"] == shown


async def test_a_request_that_is_sent_again_begins_nothing(
    gateway: RunningGateway, owner: dict[str, str], hook: Hook
) -> None:
    now = time.time()
    first = await hook.send("msg_again", at=now)
    assert first[1]["run"] is not None
    assert await hook.send("msg_again", at=now) == (202, {"run": None})
    assert await hook.send("msg_again") == (202, {"run": None})


@pytest.mark.parametrize("seconds", [-301.0, -86400.0, 400.0])
async def test_a_request_that_is_too_old_or_from_the_future_is_refused(hook: Hook, seconds: float) -> None:
    status, answer = await hook.send("msg_old", at=time.time() + seconds)
    assert (status, answer["error"]["code"]) == (401, "hook.bad-credentials")


@pytest.mark.parametrize(
    "wrong",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
        {"webhook-signature": "v2,AAAA v1a,AAAA"},
        {"webhook-id": "another"},
        {"webhook-id": ""},
        {"webhook-id": "x" * 201},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "9" * 40},
        {"webhook-timestamp": "-1"},
    ],
)
async def test_a_request_whose_signature_does_not_fit_is_refused(hook: Hook, wrong: dict[str, str]) -> None:
    status, answer = await hook.send("msg_wrong", headers=wrong)
    assert (status, answer["error"]["code"]) == (401, "hook.bad-credentials")


async def test_a_signature_over_another_body_is_refused(hook: Hook, gateway: RunningGateway) -> None:
    now = int(time.time())
    signature = sign(base64.b64decode(hook.secret.removeprefix("whsec_")), "msg_body", now, b"{}")
    headers = {"webhook-id": "msg_body", "webhook-timestamp": str(now), "webhook-signature": signature}
    answer = await gateway.http.post("/v1/hooks/hook", content=b'{"x":1}', headers=headers)
    assert answer.status_code == 401


async def test_a_signed_request_cannot_be_read_as_another_one(hook: Hook, gateway: RunningGateway) -> None:
    """Its text begins with a time, so the same signature fits another id, time and body: it would begin a second run."""
    now = int(time.time())
    key = base64.b64decode(hook.secret.removeprefix("whsec_"))
    signature = sign(key, "msg_shift", now - 1, f"{now}.rest".encode())
    first = {"webhook-id": "msg_shift", "webhook-timestamp": str(now - 1), "webhook-signature": signature}
    answer = await gateway.http.post("/v1/hooks/hook", content=f"{now}.rest", headers=first)
    assert answer.status_code == 202
    second = {**first, "webhook-id": f"msg_shift.{now - 1}", "webhook-timestamp": str(now)}
    assert (await gateway.http.post("/v1/hooks/hook", content="rest", headers=second)).status_code == 401
    assert (await hook.send("urn:shop.example.com/v1.2/17"))[0] == 202


async def test_a_stranger_does_not_learn_which_routines_there_are(gateway: RunningGateway, hook: Hook) -> None:
    """A routine without a webhook, one that does not exist, and a wrong secret are answered with the same words."""
    answers = []
    for name in ("hook", "morning", "nothing-here"):
        status, answer = await Hook(gateway, name, make_secret()).send("msg_x")
        answers.append((status, {key: value for key, value in answer["error"].items() if key != "error_id"}))
    assert answers[0] == answers[1] == answers[2]


async def test_one_secret_of_several_signatures_is_enough(hook: Hook) -> None:
    now = int(time.time())
    signature = sign(base64.b64decode(hook.secret.removeprefix("whsec_")), "msg_two", now, b"{}")
    headers = {"webhook-signature": f"v1,AAAA {signature}"}
    status, answer = await hook.send("msg_two", b"{}", at=now, headers=headers)
    assert (status, answer["run"] is not None) == (202, True)


async def test_a_body_of_a_megabyte_is_refused(hook: Hook) -> None:
    status, answer = await hook.send("msg_large", b"x" * 1_000_000)
    assert (status, answer["error"]["code"]) == (413, "gateway.too-large")


async def test_a_new_secret_ends_the_old_one(gateway: RunningGateway, owner: dict[str, str], hook: Hook) -> None:
    await call(gateway, owner, "POST", "", name="turned", routine=HOOK)
    old = Hook(gateway, "turned", (await call(gateway, owner, "POST", "/turned/webhook"))["secret"])
    assert (await old.send("msg_1"))[0] == 202
    new = Hook(gateway, "turned", (await call(gateway, owner, "POST", "/turned/webhook"))["secret"])
    assert ((await old.send("msg_2"))[0], (await new.send("msg_2"))[0]) == (401, 202)


async def test_the_secret_of_a_removed_routine_begins_no_other_of_its_name(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    await call(gateway, owner, "POST", "", name="gone", routine=HOOK)
    old = Hook(gateway, "gone", (await call(gateway, owner, "POST", "/gone/webhook"))["secret"])
    await call(gateway, owner, "DELETE", "/gone")
    await call(gateway, owner, "POST", "", name="gone", routine=HOOK)
    assert (await old.send("msg_1"))[0] == 401
    assert (await call(gateway, owner, "GET", "/gone/runs"))["runs"] == []


async def test_a_routine_whose_secret_cannot_be_forgotten_is_still_there_to_be_removed(
    gateway: RunningGateway, owner: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise whoever had the secret could begin the next routine of its name."""
    await call(gateway, owner, "POST", "", name="kept", routine=HOOK)
    old = Hook(gateway, "kept", (await call(gateway, owner, "POST", "/kept/webhook"))["secret"])

    def fail(_vault: Vault, _name: str) -> None:
        raise FreeholdError("vault.busy.unavailable", "The vault cannot be written now")

    with monkeypatch.context() as broken:
        broken.setattr(Vault, "remove", fail)
        assert "error" in await call(gateway, owner, "DELETE", "/kept")
    assert (await call(gateway, owner, "GET", "/kept"))["name"] == "kept"
    assert (await call(gateway, owner, "DELETE", "/kept"))["name"] == "kept"
    await call(gateway, owner, "POST", "", name="kept", routine=HOOK)
    assert (await old.send("msg_1"))[0] == 401


async def test_a_routine_of_the_manifest_that_is_not_removed_keeps_its_secret(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    hook = Hook(gateway, "deploy", (await call(gateway, owner, "POST", "/deploy/webhook"))["secret"])
    assert (await call(gateway, owner, "DELETE", "/deploy"))["error"]["code"] == "routine.conflict"
    assert (await hook.send("msg_1"))[0] == 202


async def test_a_paused_routine_takes_no_request_and_a_token_makes_no_secret(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    await call(gateway, owner, "POST", "", name="held", routine=HOOK)
    hook = Hook(gateway, "held", (await call(gateway, owner, "POST", "/held/webhook"))["secret"])
    await call(gateway, owner, "POST", "/held/pause")
    status, answer = await hook.send()
    assert (status, answer["error"]["code"]) == (409, "routine.paused.conflict")
    token = gateway.token("routines", "prompt", name="weak")
    assert (await call(gateway, token, "POST", "/held/webhook"))["error"]["code"] == "identity.wrong-scope"
    assert (await call(gateway, owner, "POST", "/morning/webhook"))["error"]["code"] == "routine.conflict"
