"""Both clients have a call for every operation of the API, except for those that are listed here with the reason."""

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.client.test_typescript import list_python_calls, list_python_resources, run_example, to_camel
from tests.computer.isolates.conftest import node_folder
from tests.support.freehold import ROOT

from freehold.client._async.connection import AsyncConnection
from freehold.client._async.freehold import AsyncFreehold
from freehold.client._async.sessions import AsyncSession

Request = tuple[str, str, str, str]
"""The class and the name of a call, and the method and the path of a request that it makes."""

WITHOUT_CALL: dict[str, tuple[str, ...]] = {
    "a monitor or a proxy asks, without a token": ("allow_preview_certificate", "livez", "ready"),
    "another program calls it: a webhook": ("receive_hook",),
    "only Freeholds call it, with requests that their keys sign": (
        "begin_hosted_work",
        "deregister_client",
        "get_bead_caller",
        "get_hosted_archive",
        "introduce_mesh",
        "list_agent_cards",
        "note_client_heartbeat",
        "read_hosted_work",
        "redeem_pairing_code",
        "register_client",
        "stop_hosted_work",
    ),
    "`freehold login` makes a token by it, before there is one": ("collect_token", "request_token"),
    "only a signed-in browser may": ("answer_device", "create_token", "get_waiting_device", "sign_out"),
    "a browser signs in by it": ("begin_sign_in", "list_sign_in_options", "redeem_sign_in_link"),
    "the owner of the account proves who he is, in a browser": ("begin_account_record",),
    "the push messages of one browser": (
        "add_push_subscription",
        "get_push_key",
        "list_push_subscriptions",
        "remove_push_subscription",
    ),
    "an address for a link in a page; a program reads what it wants": ("create_download_ticket",),
    "a terminal is drawn, and used over a socket of its own; a program runs code or prompts": (
        "close_terminal",
        "list_terminals",
        "open_terminal",
    ),
    "the page has a form for it, and the guide says that the clients have no call": (
        "add_mcp_server",
        "change_setting",
        "get_policy",
        "list_settings",
        "set_policy",
    ),
    "`freehold agents` and `freehold doctor` do it, and the guide says that the clients have no call": (
        "install_agent_programs",
        "read_doctor",
        "remove_agent_programs",
        "start_doctor",
        "stop_doctor",
        "test_agent",
    ),
    "a page shows it while its owner decides": (
        "export_session",
        "get_prompt_image",
        "history_notices",
        "history_size",
        "look_at_skill_archive",
        "try_model",
    ),
    "for a person without a key; a program makes its own: `home.ssh.certify`": ("issue_ssh_key",),
    "a document has the name that its writer chose: `home.pods.write`": ("add_document",),
}

NOTHING: tuple[str, ...] = ()
METHODS = ("get", "post", "put", "patch", "delete")
DESCRIPTION = json.loads((ROOT / "docs" / "openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, operations in DESCRIPTION["paths"].items()
    for method, operation in operations.items()
    if method in METHODS
}


def make_reply() -> MagicMock:
    """The last page of anything, and code that has ended."""
    page = {"events": (), "records": (), "cursor": None, "next": None}
    return MagicMock(
        id="x", session="x", base64="", limit=None, error=None, failure=None, exit_code=0, items=(), **page
    )


class RecordedConnection(AsyncConnection):
    """Notes each request, and the type as which its reply would be read, in the place of sending it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.answers: list[tuple[str, str, Any]] = []

    async def _request(self, method: str, path: str, answer: Any, **_options: object) -> Any:
        self.requests.append((method, path.partition("?")[0]))
        self.answers.append((*self.requests[-1], answer))
        return make_reply()

    async def download(self, path: str) -> tuple[Mapping[str, str], bytes]:
        self.requests.append(("GET", path.partition("?")[0]))
        return {"content-type": "text/plain"}, b""

    async def upload(self, method: str, path: str, answer: Any, *_given: object) -> Any:
        return await self._request(method, path, answer)

    async def stream(self, path: str, part: Any, *_given: object) -> AsyncIterator[Any]:  # type: ignore[override]
        yield await self._request("POST", path, part)

    async def follow_events(self, path: str, *_given: object) -> AsyncIterator[str]:  # type: ignore[override]
        self.requests.append(("GET", path.partition("?")[0]))
        for text in NOTHING:
            yield text

    async def follow(self, _topic: str, _after: int | None) -> AsyncIterator[Any]:
        for message in NOTHING:
            yield message


def make_argument(parameter: inspect.Parameter) -> object:
    kind = str(parameter.annotation)
    if "Mapping" in kind:
        return {}
    return [] if "Sequence" in kind or "Iterable" in kind else "x"


async def make(call: Callable[..., Any]) -> None:
    required = [one for one in inspect.signature(call).parameters.values() if one.default is one.empty]
    given = [make_argument(one) for one in required if one.kind is one.POSITIONAL_OR_KEYWORD]
    named = {one.name: make_argument(one) for one in required if one.kind is one.KEYWORD_ONLY}
    made = call(*given, **named)
    if not inspect.isasyncgen(made):
        await made
        return
    async for _ in made:
        break
    await made.aclose()


async def record_python(connection: RecordedConnection | None = None) -> list[Request]:
    home = AsyncFreehold("http://localhost:1", token="fh_x")
    await home.close()
    connection = home._connection = connection or RecordedConnection()
    owners: list[object] = [home, AsyncSession(connection, make_reply())]
    owners += [kind(connection) for kind in list_python_resources().values()]
    found: list[Request] = []
    for owner in owners:
        kind = type(owner).__name__.removeprefix("Async")
        for name in dir(type(owner)):
            if to_camel(name) in list_python_calls()[kind]:
                connection.requests.clear()
                await make(getattr(owner, name))
                found += [(kind, to_camel(name), method, path) for method, path in connection.requests]
    return found


async def record_typescript() -> list[Request]:
    names = {kind: sorted(calls) for kind, calls in list_python_calls().items()}
    node = node_folder() / "bin" / "node"
    script = ROOT / "tests" / "client" / "record_calls.ts"
    return [tuple(one) for one in json.loads(await run_example(node, "--no-warnings", script, json.dumps(names)))]


RECORDERS = {"python": record_python, "typescript": record_typescript}


def find_operation(method: str, path: str) -> str | None:
    """The operation of a request. A path without parameters is meant before one with them."""
    fitting = [
        (template.count("{"), name)
        for name, (known, template) in OPERATIONS.items()
        if known == method and re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+/?", re.escape(template)), path)
    ]
    return min(fitting)[1] if fitting else None


@pytest.mark.parametrize("language", RECORDERS)
async def test_every_operation_has_a_call_or_a_reason_for_none(language: str) -> None:
    """A listed operation that has a call, or that is no more, fails as well: the list shrinks with every new call."""
    made = {find_operation(method, path) for _, _, method, path in await RECORDERS[language]()}
    listed = [name for names in WITHOUT_CALL.values() for name in names]
    assert len(listed) == len(set(listed))
    assert sorted(OPERATIONS.keys() - made) == sorted(listed)


@pytest.mark.parametrize("language", RECORDERS)
async def test_every_request_of_a_call_is_described(language: str) -> None:
    requests = await RECORDERS[language]()
    assert len(requests) > 100
    assert [one for one in requests if find_operation(*one[2:]) is None] == []


async def test_both_clients_make_the_same_requests() -> None:
    """Of each call, which the names alone do not show."""
    recorded = {
        language: {(kind, call, find_operation(method, path)) for kind, call, method, path in await record()}
        for language, record in RECORDERS.items()
    }
    assert recorded["python"] == recorded["typescript"]
