"""`/v1/workflows`: scopes, and what a request may do. The files themselves need a computer: other tests run them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowStore

pytestmark = pytest.mark.asyncio(loop_scope="module")
ASK = StepAsked("1", "ask", "Go on?", {"question": "Go on?", "choices": ["yes", "no"]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path_factory.mktemp("home"), "[workflows]\nbudget = 3.0\n") as running:
        yield running


@pytest.fixture(scope="module")
def owner(gateway: RunningGateway) -> dict[str, str]:
    return gateway.token("routines", "prompt", "terminal", name="owner")


async def call(gateway: RunningGateway, headers: dict[str, str], method: str, path: str, **body: Any) -> Any:
    given = body if method == "POST" else None
    return (await gateway.http.request(method, f"/v1/workflows{path}", headers=headers, json=given)).json()


def store_of(gateway: RunningGateway) -> WorkflowStore:
    return gateway.context.service(WorkflowService).store


async def begin_question(gateway: RunningGateway, owner: dict[str, str]) -> str:
    """A workflow that waits for an answer, as if its file had run."""
    made = await call(gateway, owner, "POST", "", file="w.py")
    store = store_of(gateway)

    def wait() -> bool:
        return store.claim(made["id"], "text", "here") is not None

    await until(wait)
    store.steps.begin_step(made["id"], ASK, 10, "here")
    store.suspend(made["id"], ["1"])
    return str(made["id"])


async def test_a_token_begins_a_workflow_only_if_it_may_prompt_and_run_commands(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    for scopes in (("routines",), ("routines", "prompt"), ("routines", "terminal")):
        headers = gateway.token(*scopes, name="-".join(scopes))
        assert (await call(gateway, headers, "POST", "", file="w.py"))["error"]["code"] == "identity.wrong-scope"
    made = await call(gateway, owner, "POST", "", file="w.py", data={"a": 1})
    assert (made["state"], made["budget"], made["name"], made["who"]) == ("due", 3.0, "w", "token:owner")
    assert (await call(gateway, owner, "GET", f"/{made['id']}"))["data"] == {"a": 1}
    none = gateway.token("routines", name="none")
    assert (await call(gateway, none, "POST", f"/{made['id']}/cancel"))["state"] == "cancelled"
    assert (await call(gateway, none, "POST", f"/{made['id']}/retry"))["error"]["code"] == "identity.wrong-scope"
    assert (await call(gateway, none, "GET", f"/{made['id']}"))["error"]["code"] == "identity.wrong-scope"
    reader = gateway.token("read", name="reader")
    assert (await call(gateway, reader, "GET", ""))["error"]["code"] == "identity.wrong-scope"


async def test_a_question_is_answered_once_by_who_may_prompt(gateway: RunningGateway, owner: dict[str, str]) -> None:
    id = await begin_question(gateway, owner)
    (step,) = (await call(gateway, owner, "GET", f"/{id}"))["steps"]
    assert (step["kind"], step["state"], step["choices"]) == ("ask", "waiting", ["yes", "no"])
    answer = {"step": "1", "answer": "yes"}
    none = gateway.token("routines", name="no-prompt")
    assert (await call(gateway, none, "POST", f"/{id}/answer", **answer))["error"]["code"] == "identity.wrong-scope"
    wrong = await call(gateway, owner, "POST", f"/{id}/answer", step="1", answer="perhaps")
    assert wrong["error"]["code"] == "workflow.bad-value"
    assert (await call(gateway, owner, "POST", f"/{id}/answer", **answer))["steps"][0]["result"] == "yes"
    assert (await call(gateway, owner, "POST", f"/{id}/answer", **answer))["error"]["code"] == "workflow.step.conflict"


async def test_workflows_are_listed_in_pages_ended_and_told_events(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    ids = [(await call(gateway, owner, "POST", "", file=f"w{number}.py"))["id"] for number in range(3)]
    first = await call(gateway, owner, "GET", "?limit=2")
    assert [one["id"] for one in first["workflows"]] == ids[:0:-1]
    second = await call(gateway, owner, "GET", f"?limit=2&before={first['cursor']}")
    assert second["workflows"][0]["id"] == ids[0]
    assert (await call(gateway, owner, "POST", f"/{ids[0]}/events", name="go", data={"a": 1}))["state"] == "due"
    assert (await call(gateway, owner, "POST", f"/{ids[0]}/cancel"))["state"] == "cancelled"
    assert (await call(gateway, owner, "POST", f"/{ids[0]}/cancel"))["state"] == "cancelled"
    late = await call(gateway, owner, "POST", f"/{ids[0]}/events", name="go")
    assert late["error"]["code"] == "workflow.conflict"
    assert (await call(gateway, owner, "POST", f"/{ids[0]}/retry"))["state"] == "due"
    assert (await call(gateway, owner, "POST", f"/{ids[0]}/retry"))["error"]["code"] == "workflow.conflict"
    for path in ("../x.py", "/etc/x.py", "x.sh"):
        assert (await call(gateway, owner, "POST", "", file=path))["error"]["code"] == "workflow.bad-path"
    assert (await call(gateway, owner, "GET", "/none"))["error"]["code"] == "workflow.not-found"


async def test_why_a_workflow_failed_is_read_only_by_who_may_read_what_its_agents_say(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    made = await call(gateway, owner, "POST", "", file="w.py")
    store = store_of(gateway)
    store.end(made["id"], "failed", error="The agent said: it is too late")
    for scopes, error in ((("routines",), None), (("routines", "prompt"), "The agent said: it is too late")):
        headers = gateway.token(*scopes, name="-".join(("why", *scopes)))
        (listed,) = (await call(gateway, headers, "GET", "?limit=1"))["workflows"]
        ended = await call(gateway, headers, "POST", f"/{made['id']}/cancel")
        assert [(one["id"], one["state"], one["error"]) for one in (listed, ended)] == [
            (made["id"], "failed", error),
            (made["id"], "failed", error),
        ]


async def test_health_and_metrics_say_how_routines_and_workflows_are(
    gateway: RunningGateway, owner: dict[str, str]
) -> None:
    async def states() -> dict[str, str]:
        found = (await gateway.http.get("/health")).json()["components"]
        return {one["name"]: one["state"] for one in found if one["name"] in ("routines", "workflows")}

    async def is_ok() -> bool:
        return await states() == {"routines": "ok", "workflows": "ok"}

    assert (await states())["routines"] == "off"  # there is none
    added = {"name": "later", "routine": {"every": "1h", "prompt": "x"}}
    assert (await gateway.http.post("/v1/routines", headers=owner, json=added)).is_success
    assert (await gateway.http.post("/v1/workflows", headers=owner, json={"file": "gone.py"})).is_success
    await until(is_ok)
