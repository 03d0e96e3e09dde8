"""Every value that a request can contain has a type and bounds, and is never converted from another type."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway

from freehold.agents.sessions.answered_turns import ANSWER_KEY
from freehold.channels.notices import make_prompt_key
from freehold.errors import FreeholdError
from freehold.gateway.inputs import MAX_NUMBER, MAX_PATH, read_path
from freehold.routines.records import KEY as ROUTINE_KEY
from freehold.routines.workflows.records import KEY as WORKFLOW_KEY

Schema = dict[str, Any]
HUGE = (2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63) - 1)


def inputs_of(description: Schema) -> Iterator[tuple[str, Schema]]:
    """Each parameter and each body of the API, with its address."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                yield f"{method} {path} {parameter['name']}", parameter["schema"]
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                if kind == "application/json":
                    yield f"{method} {path} body", content["schema"]


def find_unbounded(where: str, schema: Schema, schemas: Schema) -> Iterator[str]:
    if "$ref" in schema:
        yield from find_unbounded(where, schemas[schema["$ref"].rpartition("/")[2]], schemas)
        return
    for choice in schema.get("anyOf", ()):
        yield from find_unbounded(where, choice, schemas)
    if "enum" in schema or "const" in schema:
        return
    match schema.get("type"):
        case "integer":
            lowest = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
            highest = [schema[name] for name in ("maximum", "exclusiveMaximum") if name in schema]
            if not lowest or not highest or lowest[0] < -MAX_NUMBER or highest[0] > MAX_NUMBER:
                yield f"{where}: no bounds"
        case "number":
            if not {"maximum", "exclusiveMaximum"} & schema.keys():
                yield f"{where}: no maximum"
        case "string":
            if "maxLength" not in schema:
                yield f"{where}: no maxLength"
        case "array":
            if "maxItems" not in schema:
                yield f"{where}: no maxItems"
            yield from find_unbounded(f"{where}[]", schema["items"], schemas)
        case "object":
            if schema.get("additionalProperties", True) is not False and "maxProperties" not in schema:
                yield f"{where}: any number of fields"
            for name, inner in schema.get("properties", {}).items():
                yield from find_unbounded(f"{where}.{name}", inner, schemas)
        case None:
            assert "anyOf" in schema, f"{where} has no type"


async def test_everything_that_a_request_can_contain_has_bounds(gateway: RunningGateway) -> None:
    """Also what a route that is added tomorrow accepts."""
    description = (await gateway.http.get("/v1/openapi.json", headers=gateway.token("read"))).json()
    schemas = description["components"]["schemas"]
    found = list(inputs_of(description))
    assert len(found) > 100
    assert [problem for where, schema in found for problem in find_unbounded(where, schema, schemas)] == []


NUMBERS_IN_ADDRESSES = (
    "/v1/sessions/x/events?after={}",
    "/v1/sessions/x/events?before={}",
    "/v1/sessions/x/events?limit={}",
    "/v1/sessions/x/turns/{}/images/0",
    "/v1/sessions/x/turns/1/images/{}",
    "/v1/sessions?limit={}",
    "/v1/timeline?after={}",
    "/v1/timeline?before={}",
    "/v1/history?before={}",
    "/v1/history?limit={}",
    "/v1/history/{}",
    "/v1/history/{}/diff",
    "/v1/history/{}/file?path=x",
    "/v1/files/list?limit={}",
    "/v1/files/search?query=x&limit={}",
    "/v1/usage?limit={}",
)


@pytest.mark.parametrize("address", NUMBERS_IN_ADDRESSES)
async def test_a_number_in_an_address_is_digits_within_bounds(gateway: RunningGateway, address: str) -> None:
    headers = gateway.token("admin")
    wrong = [*HUGE, -1, "1.0", "1_0", "%201", "%2B1", "0x1", "1e3", "true", "٣", ""]
    if address == "/v1/history/{}":
        wrong.remove("")  # another address
    for value in wrong:
        answer = await gateway.http.get(address.format(value), headers=headers)
        assert answer.status_code in (404, 422), f"{value}: {answer.text}"
        if answer.status_code == 422:
            assert answer.json()["error"]["code"] == "request.invalid"
        else:
            assert answer.json()["error"]["code"] == "request.not-found", "the number reached the route"


NUMBERS_IN_BODIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("/v1/sessions/x/rewind", {"what": "chat"}, "turn"),
    ("/v1/sessions/x/seen", {}, "seq"),
    ("/v1/history/undo", {}, "entry"),
    ("/v1/history/restore", {}, "entry"),
    ("/v1/history/revert", {}, "entry"),
    ("/v1/history/revert", {"entry": 1}, "since"),
    ("/v1/history/plan", {"action": "undo"}, "entry"),
    ("/v1/terminals", {}, "rows"),
    ("/v1/terminals", {}, "columns"),
    ("/v1/tokens", {"name": "x", "scopes": ["read"]}, "days"),
)


@pytest.mark.parametrize(("path", "body", "field"), NUMBERS_IN_BODIES)
async def test_a_number_in_a_body_is_a_number_within_bounds(
    gateway: RunningGateway, path: str, body: dict[str, Any], field: str
) -> None:
    headers = gateway.browser()
    wrong: list[Any] = [*HUGE, True, False, "1", 1.5, [1], {}]
    for value in wrong:
        answer = await gateway.http.post(path, json={**body, field: value}, headers=headers)
        assert answer.status_code == 422, f"{value}: {answer.text}"
        assert field in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/history/1/good", {}, "good"),
        ("/v1/files/move", {"path": "a", "to": "b"}, "replace"),
        ("/v1/files/remove", {"path": "a"}, "recursive"),
        ("/v1/sessions/x/rewind", {"what": "chat", "turn": 1}, "dry_run"),
        ("/v1/doctor", {}, "quick"),
    ],
)
async def test_a_truth_in_a_body_is_true_or_false(
    gateway: RunningGateway, path: str, body: dict[str, Any], field: str
) -> None:
    headers = gateway.browser()
    wrong: list[Any] = [0, 1, "true", "false", "", "on", None, [], 0.0]
    for value in wrong:
        answer = await gateway.http.post(path, json={**body, field: value}, headers=headers)
        assert answer.status_code == 422, f"{value!r}: {answer.text}"


@pytest.mark.parametrize(
    "address", ["/v1/sessions?archived={}", "/v1/files/tree?all={}", "/v1/files/search?query=x&regex={}"]
)
async def test_a_truth_in_an_address_is_true_or_false(gateway: RunningGateway, address: str) -> None:
    headers = gateway.token("admin")
    for value in ("0", "1", "True", "yes", "on", "t", "", "%20true"):
        assert (await gateway.http.get(address.format(value), headers=headers)).status_code == 422, value


async def test_a_message_that_is_too_long_is_told_in_words(gateway: RunningGateway) -> None:
    session, token = await gateway.open_session("hello"), gateway.token("prompt")
    body = {"text": "x" * (5 << 20), "key": "one"}
    answer = await gateway.http.post(f"/v1/sessions/{session}/prompt", headers=token, json=body)
    assert answer.status_code == 413
    error = answer.json()["error"]
    assert error["code"] == "prompt.too-long"
    assert error["message"] == "The message has 5,242,880 characters; at most 1,000,000 can be sent"
    assert "file" in error["hint"]
    answer = await gateway.http.patch(f"/v1/sessions/{session}", headers=token, json={"title": "x" * 201})
    assert answer.json()["error"]["message"] == "The request is not valid: title: more than 200 characters"


async def test_a_message_needs_a_text_or_an_image(gateway: RunningGateway) -> None:
    session, token = await gateway.open_session("hello"), gateway.token("prompt")
    answer = await gateway.http.post(f"/v1/sessions/{session}/prompt", headers=token, json={"text": "", "key": "one"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].endswith("text: a message needs a text or an image")


async def test_no_client_sends_a_prompt_as_if_freehold_did(gateway: RunningGateway) -> None:
    """Such a key says that the turn is of a routine, a channel or an answer: it would be told elsewhere, or not at all."""
    session, token = await gateway.open_session("hello"), gateway.token("prompt")
    own = (f"{ANSWER_KEY}x", make_prompt_key("telegram", "7"), f"{ROUTINE_KEY}r1:1", f"{WORKFLOW_KEY}w1:2")
    for key in own:
        answer = await gateway.http.post(
            f"/v1/sessions/{session}/prompt", headers=token, json={"text": "x", "key": key}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "request.invalid"), key
    assert gateway.context.sessions.dependencies.store.get(session).turns == 0


async def test_what_has_the_right_type_passes(gateway: RunningGateway) -> None:
    """Without this, the refusals above would prove nothing."""
    headers = gateway.browser()
    for address in ("/v1/sessions?archived=true&limit=1", f"/v1/timeline?after=0&before={2**53}"):
        assert (await gateway.http.get(address, headers=headers)).status_code == 200
    answer = await gateway.http.post("/v1/sessions/x/seen", json={"seq": 2**53}, headers=headers)
    assert answer.json()["error"]["code"] == "session.not-found"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\0b", "files.bad-path"),
        ("a\\x00b", "files.bad-path"),
        ("a" * (MAX_PATH + 1), "files.name-too-long"),
        ("ä" * MAX_PATH, "files.name-too-long"),
        ("\\xff" * (MAX_PATH + 1), "files.name-too-long"),
    ],
)
def test_a_path_that_linux_does_not_accept_is_refused_before_it_is_sent(text: str, code: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        read_path(text)
    assert refused.value.code == code
    assert len(refused.value.message) < 200
    assert refused.value.kind.status == 400


def test_a_path_of_any_bytes_can_be_sent() -> None:
    assert read_path("\\xff" * MAX_PATH) == b"\xff" * MAX_PATH
    assert read_path("ordner/ä b.txt") == "ordner/ä b.txt".encode()
