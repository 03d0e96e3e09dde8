"""What each scope of an API token reaches, as a table, and the acts for which a route needs one scope more."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway, next_message

from freehold.agents.sessions.owner_command import is_owner_command, runs_command
from freehold.agents.sessions.permission_request import make_text_request
from freehold.gateway.route_scope import RouteScope
from freehold.identity.tokens import SCOPES, Scope

REACHES: dict[RouteScope, set[str]] = {
    "read": {
        "GET /v1/mesh",
        "GET /v1/mesh/clients",
        "GET /v1/mesh/neighbours",
        "GET /v1/mesh/neighbours/{name}/agents",
        "GET /v1/mesh/record",
        "DELETE /v1/me",
        "GET /v1/agents",
        "GET /v1/backup",
        "GET /v1/credentials",
        "GET /v1/doctor",
        "GET /v1/egress",
        "GET /v1/fleet",
        "GET /v1/history",
        "GET /v1/history/notices",
        "GET /v1/history/restores",
        "GET /v1/history/size",
        "GET /v1/history/{entry}",
        "GET /v1/mcp",
        "GET /v1/me",
        "GET /v1/meta",
        "GET /v1/models",
        "GET /v1/openapi.json",
        "GET /v1/preview/ports",
        "GET /v1/preview/sites",
        "GET /v1/programs",
        "GET /v1/sessions",
        "GET /v1/sessions/{session}",
        "GET /v1/sessions/{session}/offer",
        "GET /v1/skills",
        "GET /v1/skills/{name}",
        "GET /v1/skills/{name}/file",
        "GET /v1/slots",
        "GET /v1/ssh",
        "GET /v1/ssh/certificates",
        "GET /v1/stop",
        "GET /v1/timeline",
        "GET /v1/usage",
        "POST /v1/history/plan",
        "POST /v1/mcp-server",
        "SOCKET /v1/socket",
    },
    "prompt": {
        "GET /v1/mesh/messages",
        "GET /v1/mesh/work",
        "GET /v1/mesh/work/{work}",
        "POST /v1/mesh/work",
        "POST /v1/mesh/work/{work}/stop",
        "DELETE /v1/sessions/{session}",
        "GET /v1/approvals",
        "GET /v1/sessions/{session}/events",
        "GET /v1/sessions/{session}/export",
        "GET /v1/sessions/{session}/turns/{turn}/images/{place}",
        "PATCH /v1/sessions/{session}",
        "POST /v1/approvals/{approval}",
        "POST /v1/sessions",
        "POST /v1/sessions/{session}/cancel",
        "POST /v1/sessions/{session}/discard",
        "POST /v1/sessions/{session}/fork",
        "POST /v1/sessions/{session}/prompt",
        "POST /v1/sessions/{session}/rewind",
        "POST /v1/sessions/{session}/seen",
        "POST /v1/stop",
        "POST /v1/workflows/{workflow}/answer",
        "POST /v1/tour",
    },
    "files": {
        "POST /v1/mesh/work/{work}/accept",
        "POST /v1/mesh/work/{work}/drop",
        "GET /v1/files/content",
        "GET /v1/files/list",
        "GET /v1/files/search",
        "GET /v1/files/stat",
        "GET /v1/files/tree",
        "GET /v1/history/compare",
        "GET /v1/history/{entry}/diff",
        "GET /v1/history/{entry}/file",
        "POST /v1/files/copy",
        "POST /v1/files/folder",
        "POST /v1/files/move",
        "POST /v1/files/remove",
        "PUT /v1/files/content",
    },
    "terminal": {
        "DELETE /v1/code/contexts/{context}",
        "DELETE /v1/terminals/{terminal}",
        "GET /v1/code/contexts",
        "GET /v1/git/diff",
        "GET /v1/git/log",
        "GET /v1/git/repositories",
        "GET /v1/git/state",
        "POST /v1/git/commit",
        "POST /v1/git/stage",
        "POST /v1/git/stage-hunk",
        "POST /v1/git/switch",
        "POST /v1/git/worktrees",
        "POST /v1/git/worktrees/remove",
        "GET /v1/code/contexts/{context}",
        "GET /v1/terminals",
        "POST /v1/code/contexts",
        "POST /v1/code/contexts/{context}/execute",
        "POST /v1/code/contexts/{context}/interrupt",
        "POST /v1/code/contexts/{context}/reset",
        "POST /v1/code/contexts/{context}/stream",
        "POST /v1/code/execute",
        "POST /v1/code/stream",
        "POST /v1/preview/sites/{name}/open",
        "POST /v1/preview/sites/{name}/stop",
        "POST /v1/preview/{port}/open",
        "POST /v1/terminals",
        "SOCKET /v1/terminals/{terminal}/socket",
    },
    "history": {
        "POST /v1/history/redo",
        "POST /v1/history/restore",
        "POST /v1/history/restores/{restore_id}/cancel",
        "POST /v1/history/revert",
        "POST /v1/history/undo",
        "POST /v1/history/{entry}/good",
    },
    "memory": {
        "DELETE /v1/slots/memory/entries/{memory}",
        "GET /v1/slots/memory/entries",
        "GET /v1/slots/memory/entries/{memory}",
        "GET /v1/slots/memory/export",
        "GET /v1/slots/memory/status",
        "PATCH /v1/slots/memory/entries/{memory}",
        "POST /v1/slots/memory/entries",
        "POST /v1/slots/memory/import",
        "POST /v1/slots/memory/search",
    },
    "pods": {
        "DELETE /v1/slots/pods/data/{path:path}",
        "GET /v1/slots/pods/data/{path:path}",
        "GET /v1/slots/pods/export",
        "GET /v1/slots/pods/grants",
        "GET /v1/slots/pods/list",
        "PATCH /v1/slots/pods/data/{path:path}",
        "POST /v1/slots/pods/data/{path:path}",
        "POST /v1/slots/pods/import",
        "PUT /v1/slots/pods/data/{path:path}",
    },
    "orchestrator": {
        "GET /v1/slots/orchestrator/runs",
        "GET /v1/slots/orchestrator/runs/{run}",
        "GET /v1/slots/orchestrator/runs/{run}/changes",
        "GET /v1/slots/orchestrator/runs/{run}/events",
        "POST /v1/slots/orchestrator/runs",
        "POST /v1/slots/orchestrator/runs/{run}/changes",
        "POST /v1/slots/orchestrator/runs/{run}/stop",
    },
    "routines": {
        "DELETE /v1/routines/{name}",
        "GET /v1/routines",
        "GET /v1/routines/{name}",
        "GET /v1/routines/{name}/runs",
        "GET /v1/routines/{name}/runs/{run}",
        "GET /v1/workflows",
        "GET /v1/workflows/{workflow}",
        "POST /v1/routines",
        "POST /v1/routines/plan",
        "POST /v1/routines/{name}/pause",
        "POST /v1/routines/{name}/resume",
        "POST /v1/routines/{name}/run",
        "POST /v1/routines/{name}/runs/{run}/stop",
        "POST /v1/workflows",
        "POST /v1/workflows/{workflow}/cancel",
        "POST /v1/workflows/{workflow}/events",
        "POST /v1/workflows/{workflow}/retry",
    },
    "events": {
        "GET /v1/slots/events",
        "GET /v1/slots/events/dead",
        "GET /v1/slots/events/delivery",
        "GET /v1/slots/events/export",
        "GET /v1/slots/events/stream",
        "POST /v1/slots/events",
        "POST /v1/slots/events/dead/drop",
        "POST /v1/slots/events/dead/resend",
        "POST /v1/slots/events/import",
    },
    "beads": {
        "DELETE /v1/slots/beads/items/{bead}/needs/{needs}",
        "GET /v1/slots/beads/caller",
        "GET /v1/slots/beads/export",
        "GET /v1/slots/beads/items",
        "GET /v1/slots/beads/items/{bead}",
        "GET /v1/slots/beads/items/{bead}/changes",
        "PATCH /v1/slots/beads/items/{bead}",
        "POST /v1/slots/beads/import",
        "POST /v1/slots/beads/items",
        "POST /v1/slots/beads/items/{bead}/claim",
        "POST /v1/slots/beads/items/{bead}/close",
        "POST /v1/slots/beads/items/{bead}/comments",
        "POST /v1/slots/beads/items/{bead}/needs",
        "POST /v1/slots/beads/items/{bead}/release",
        "POST /v1/slots/beads/items/{bead}/reopen",
        "POST /v1/slots/beads/items/{bead}/work",
    },
    "neighbour": {
        "GET /v1/mesh/cards",
        "GET /v1/mesh/hosted/{work}/archive",
        "GET /v1/mesh/hosted/{work}/events",
        "POST /v1/mesh/deregister",
        "POST /v1/mesh/heartbeat",
        "POST /v1/mesh/hosted",
        "POST /v1/mesh/hosted/{work}/stop",
        "POST /v1/mesh/register",
    },
    "admin": {
        "DELETE /v1/mesh/neighbours/{name}",
        "PATCH /v1/mesh/neighbours/{name}",
        "POST /v1/mesh/codes",
        "POST /v1/mesh/codes/read",
        "POST /v1/mesh/key",
        "POST /v1/mesh/neighbours",
        "POST /v1/mesh/neighbours/{name}/messages",
        "DELETE /v1/channels/webpush/subscriptions/{subscription}",
        "DELETE /v1/channels/{channel}",
        "GET /v1/channels",
        "GET /v1/channels/webpush/subscriptions",
        "POST /v1/backup/runs",
        "DELETE /v1/fleet/nodes/{name}",
        "PATCH /v1/fleet/nodes/{name}",
        "PATCH /v1/channels/{channel}/preferences",
        "POST /v1/channels",
        "POST /v1/channels/{channel}/confirm",
        "POST /v1/channels/{channel}/pair",
        "POST /v1/channels/{channel}/test",
        "POST /v1/routines/{name}/webhook",
        "GET /v1/slots/pods/access",
        "POST /v1/slots/pods/grants",
        "POST /v1/slots/pods/grants/revoke",
        "DELETE /v1/agents/{name}",
        "DELETE /v1/doctor",
        "DELETE /v1/egress/rules/{pattern}",
        "DELETE /v1/mcp/{name}/sign-in",
        "DELETE /v1/models/{name}",
        "DELETE /v1/secrets/{name}",
        "DELETE /v1/sign-ins",
        "DELETE /v1/sign-ins/{sign_in_id}",
        "DELETE /v1/skills/{name}",
        "DELETE /v1/ssh/certificates/{credential}",
        "DELETE /v1/tokens/{name}",
        "GET /v1/approvals/policy",
        "GET /v1/budgets",
        "GET /v1/model-offers",
        "GET /v1/retention",
        "GET /v1/secrets",
        "GET /v1/settings",
        "GET /v1/sign-ins",
        "GET /v1/tokens",
        "PATCH /v1/mcp/{name}",
        "PATCH /v1/skills/{name}",
        "POST /v1/agents/registry",
        "POST /v1/agents/{name}/install",
        "POST /v1/agents/{name}/test",
        "POST /v1/budgets/lift",
        "POST /v1/doctor",
        "POST /v1/egress/requests/{number}",
        "POST /v1/egress/rules",
        "POST /v1/mcp/{name}/call",
        "POST /v1/mcp/{name}/sign-in",
        "POST /v1/mcp/{name}/try",
        "POST /v1/git/message",
        "POST /v1/git/pull",
        "POST /v1/git/push",
        "POST /v1/models/{name}/default",
        "POST /v1/models/{name}/test",
        "POST /v1/models/{name}/try",
        "POST /v1/programs/{name}/restart",
        "POST /v1/sessions/{session}/options",
        "POST /v1/skills",
        "POST /v1/skills/look",
        "POST /v1/skills/look/archive",
        "POST /v1/skills/{name}/look",
        "POST /v1/ssh/certificates",
        "POST /v1/ssh/keys",
        "POST /v1/stop/lift",
        "PUT /v1/approvals/policy",
        "PUT /v1/budgets",
        "PUT /v1/mcp/{name}/tools/{tool}",
        "PUT /v1/models/{name}",
        "PUT /v1/secrets/{name}",
        "PUT /v1/settings",
    },
    "browser": {
        "POST /v1/mcp",
        "GET /v1/channels/webpush/key",
        "POST /v1/channels/webpush/subscriptions",
        "GET /v1/devices/{code}",
        "POST /v1/devices/{code}",
        "POST /v1/download-tickets",
        "POST /v1/mesh/record",
        "POST /v1/sign-out",
        "POST /v1/tokens",
    },
}

CONTENTS: tuple[Scope, ...] = ("files", "prompt", "terminal")
"""Only these scopes, and `admin`, read what is in files or in conversations."""
WITH_CONTENTS = {
    "GET /v1/approvals",
    "GET /v1/files/content",
    "GET /v1/files/search",
    "GET /v1/git/diff",
    "GET /v1/history/compare",
    "GET /v1/history/{entry}/diff",
    "GET /v1/history/{entry}/file",
    "GET /v1/mesh/messages",
    "GET /v1/mesh/work/{work}",
    "GET /v1/sessions/{session}/events",
    "GET /v1/sessions/{session}/export",
    "GET /v1/sessions/{session}/turns/{turn}/images/{place}",
    "SOCKET /v1/terminals/{terminal}/socket",
}


async def test_each_scope_reaches_exactly_what_the_table_says(gateway: RunningGateway) -> None:
    """A route that is added, or changes its scope, changes this table, and somebody has to say so."""
    found: dict[RouteScope, set[str]] = {}
    for route in gateway.app.routes.routes:
        for method in route.methods:
            name = "SOCKET" if route.kind == "websocket" else method
            found.setdefault(route.scope, set()).add(f"{name} {route.path}")
    del found["anyone"]  # listed in test_enumeration
    assert found == REACHES


def test_only_scopes_for_contents_reach_contents() -> None:
    assert {route for scope in CONTENTS for route in REACHES[scope]} >= WITH_CONTENTS


def tokens_without(gateway: RunningGateway, *enough: Scope) -> Iterator[tuple[Scope, dict[str, str]]]:
    """A token of each scope that is not enough, together with the scopes of the routes under test."""
    for scope in SCOPES:
        if scope not in (*enough, "admin"):
            yield scope, gateway.token(*{"prompt", scope} - set(enough), name=f"only-{scope}")


async def expect(gateway: RunningGateway, headers: dict[str, str], path: str, body: dict[str, Any], code: str) -> None:
    answer = await gateway.http.post(path, json=body, headers=headers)
    assert answer.json()["error"]["code"] == code, f"{path} {body}: {answer.text}"


COMMANDS = ("!rm -rf /", "! ls", "  !ls", "\n!ls", "\t! ls", "\u00a0!ls")


@pytest.mark.parametrize("text", COMMANDS)
async def test_only_a_token_for_terminals_runs_a_command_by_prompt(gateway: RunningGateway, text: str) -> None:
    session = await gateway.open_session()
    prompt, answer = {"text": text, "key": "1"}, {"answer": "once", "note": text}
    for _, headers in tokens_without(gateway, "terminal"):
        await expect(gateway, headers, f"/v1/sessions/{session}/prompt", prompt, "identity.wrong-scope")
        await expect(gateway, headers, "/v1/approvals/none", answer, "identity.wrong-scope")
    headers = gateway.token("prompt", "terminal", name="both")
    await expect(gateway, headers, "/v1/sessions/none/prompt", prompt, "session.not-found")
    await expect(gateway, headers, "/v1/approvals/none", answer, "approval.not-found")
    assert gateway.context.sessions.dependencies.store.turns.find_next(session) is None


@pytest.mark.parametrize("text", [*COMMANDS, "hello", "a ! b", "!", " ! "])
@pytest.mark.parametrize("agent", ["builtin", "codex"])
def test_whatever_an_agent_takes_for_a_command_the_gateway_does_too(agent: str, text: str) -> None:
    builtin = agent == "builtin" and text.strip().startswith("!")
    if builtin or is_owner_command(agent, text):
        assert runs_command(text)


async def test_only_an_admin_token_answers_always(gateway: RunningGateway) -> None:
    for _, headers in tokens_without(gateway):
        for answer in ("once", "conversation", "reject"):
            await expect(gateway, headers, "/v1/approvals/none", {"answer": answer}, "approval.not-found")
        await expect(gateway, headers, "/v1/approvals/none", {"answer": "always"}, "identity.wrong-scope")
    for headers in (gateway.token("admin", name="boss"), gateway.browser()):
        await expect(gateway, headers, "/v1/approvals/none", {"answer": "always"}, "approval.not-found")


async def test_only_an_admin_token_changes_the_mode_of_an_agent_or_the_rules(gateway: RunningGateway) -> None:
    session = await gateway.open_session()
    for _, headers in tokens_without(gateway):
        option = {"id": "mode", "value": "yolo"}
        await expect(gateway, headers, f"/v1/sessions/{session}/options", option, "identity.wrong-scope")
        answer = await gateway.http.put("/v1/approvals/policy", json={"rules": []}, headers=headers)
        assert answer.status_code == 403


async def test_only_a_token_for_history_rewinds_files(gateway: RunningGateway) -> None:
    session = await gateway.open_session()
    path = f"/v1/sessions/{session}/rewind"
    for _, headers in tokens_without(gateway, "history"):
        for what in ("files", "both"):
            await expect(gateway, headers, path, {"turn": 1, "what": what}, "identity.wrong-scope")
        await expect(gateway, headers, path, {"turn": 1, "what": "chat"}, "turn.not-found")
    for headers in (gateway.token("prompt", "history", name="both"), gateway.token("admin", name="boss")):
        await expect(gateway, headers, path, {"turn": 1, "what": "both"}, "turn.not-found")


@pytest.mark.parametrize(
    ("subjects", "scope", "needed"),
    [
        # Those without a scope are of an earlier version.
        ((), None, "history"),
        (("example.org:443",), None, "admin"),
        ((), "files", "files"),
        ((), "events", "events"),
        (("pods notes/",), "admin", "admin"),
    ],
)
async def test_a_prompt_token_does_not_say_yes_to_a_host_tool_that_it_has_prompted(
    gateway: RunningGateway, subjects: tuple[str, ...], scope: str | None, needed: Scope
) -> None:
    """Otherwise a prompt "call history_undo" and the answer to its question would give it every scope."""
    session = await gateway.open_session()
    store = gateway.context.sessions.dependencies.approvals.store

    async def ask() -> str:
        request = make_text_request("host", "a host tool", "what it does", subjects, scope=scope)
        return f"/v1/approvals/{(await asyncio.to_thread(store.add, session, None, request))[0].id}"

    path = await ask()
    for _, headers in tokens_without(gateway, needed):
        for answer in ("once", "conversation") if subjects else ("once",):
            await expect(gateway, headers, path, {"answer": answer}, "identity.wrong-scope")
    assert len(store.list_pending(session)) == 1
    both: tuple[Scope, ...] = ("prompt", needed)
    for name, answer, scopes in (("no", "reject", both[:1]), ("yes", "once", both)):
        given = gateway.token(*scopes, name=name)
        answered = await gateway.http.post(await ask(), json={"answer": answer}, headers=given)
        assert answered.json()["answer"] == answer, answered.text


async def test_a_yes_to_a_host_tool_that_does_two_things_needs_the_scopes_of_both(gateway: RunningGateway) -> None:
    """Such as runs from an older state of the files."""
    session = await gateway.open_session()
    store = gateway.context.sessions.dependencies.approvals.store
    request = make_text_request("host", "Let agents work", "from entry 3", scope="orchestrator history")
    path = f"/v1/approvals/{(await asyncio.to_thread(store.add, session, None, request))[0].id}"
    one_of_both: tuple[Scope, ...] = ("orchestrator", "history")
    for one in one_of_both:
        headers = gateway.token("prompt", "files", one, name=f"only-{one}")
        await expect(gateway, headers, path, {"answer": "once"}, "identity.wrong-scope")
    assert len(store.list_pending(session)) == 1
    answered = await gateway.http.post(path, json={"answer": "once"}, headers=gateway.token("prompt", *one_of_both))
    assert answered.json()["answer"] == "once", answered.text


async def test_a_prompt_token_uploads_no_file(gateway: RunningGateway) -> None:
    for _, headers in tokens_without(gateway, "files"):
        answer = await gateway.http.put("/v1/files/content?path=x", content=b"x", headers=headers)
        assert answer.status_code == 403


async def test_a_read_token_cannot_search_in_messages(gateway: RunningGateway) -> None:
    """The answer would tell, word by word, what is in them."""
    await gateway.open_session("the words of a file: haystack")
    headers = gateway.token("read")
    assert (await gateway.http.get("/v1/sessions?query=haystack", headers=headers)).status_code == 403
    assert len((await gateway.http.get("/v1/sessions", headers=headers)).json()["sessions"]) == 1
    both = gateway.token("read", "prompt", name="both")
    assert (await gateway.http.get("/v1/sessions?query=haystack", headers=both)).status_code == 200


async def test_a_read_token_cannot_follow_conversations_on_the_socket(gateway: RunningGateway) -> None:
    session = await gateway.open_session()
    topics = ("approvals", "sessions", f"session:{session}")
    async with gateway.socket(gateway.token("read", "files")) as socket:
        for topic in topics:
            await socket.send(json.dumps({"type": "subscribe", "topic": topic, "after": 0}))
            assert (await next_message(socket, "error"))["code"] == "identity.wrong-scope"
        await socket.send(json.dumps({"type": "subscribe", "topic": "health"}))
        assert (await next_message(socket, "subscribed"))["topic"] == "health"
    async with gateway.socket(gateway.token("read", "prompt", name="both")) as socket:
        for topic in topics:
            await socket.send(json.dumps({"type": "subscribe", "topic": topic}))
            assert (await next_message(socket, "subscribed"))["topic"] == topic
