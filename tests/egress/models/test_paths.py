"""Only questions to a model get out, however the address is spelled."""

import json
from pathlib import Path

import pytest
from tests.egress.models.doorway import KEY, Doorway, doorway, question

CLOSED = [
    ("POST", "/openai/v1/files"),
    ("GET", "/openai/v1/files"),
    ("POST", "/openai/v1/uploads"),
    ("POST", "/openai/v1/batches"),
    ("GET", "/openai/v1/responses/resp_1"),
    ("DELETE", "/openai/v1/responses/resp_1"),
    ("POST", "/openai/v1/fine_tuning/jobs"),
    ("POST", "/openai/v1/vector_stores"),
    ("GET", "/openai/v1/organization/admin_api_keys"),
    ("POST", "/openai/v1/realtime/sessions"),
    ("POST", "/openai/v1/threads"),
    ("DELETE", "/openai/v1/models/ft:mine"),
    ("PUT", "/openai/v1/chat/completions"),
    ("GET", "/openai/v1/chat/completions"),
    ("GET", "/openai/v1/chat/completions/chatcmpl-1"),
    ("POST", "/openai/v1/messages"),
    ("POST", "/openai"),
    ("POST", "/anthropic/v1/files"),
    ("POST", "/anthropic/v1/messages/batches"),
    ("GET", "/anthropic/v1/organizations/users"),
    ("GET", "/anthropic/v1/usage_report/messages"),
    ("POST", "/gemini/upload/v1beta/files"),
    ("POST", "/gemini/v1beta/files"),
    ("POST", "/gemini/v1beta/cachedContents"),
    ("POST", "/gemini/v1beta/models/x:batchGenerateContent"),
    ("POST", "/gemini/v1beta/models/x:predictLongRunning"),
    ("POST", "/gemini/v1beta/tunedModels/x:transferOwnership"),
    ("POST", "/gemini/v1beta/models/a:b:generateContent"),
]
ODD = [
    "/openai/v1/../v1/chat/completions",
    "/openai/v1/chat/../files",
    "/openai/v1/chat%2fcompletions",
    "/openai/v1/..%2ffiles",
    "/openai/%2e%2e/v1/files",
    "/openai//v1/chat/completions",
    "//openai/v1/chat/completions",
    "/openai/v1/chat/completions#x",
    "/openai/v1/chat/completions\\..\\files",
    "http://127.0.0.1/openai/v1/chat/completions",
    "https://api.example.org/openai/v1/chat/completions",
    "*",
    "openai/v1/chat/completions",
    "/../openai/v1/chat/completions",
    "/nobody/v1/chat/completions",
    "/",
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_what_asks_no_model_is_refused(method: str, path: str, door: Doorway) -> None:
    provider = path.split("/")[1]
    answer = await door.http.request(method, path, json={}, headers=door.headers(provider))
    assert answer.status_code == 403
    assert answer.headers["x-freehold-refused"] == "models.closed"
    assert not door.provider.requests


@pytest.mark.parametrize("target", ODD)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_an_address_with_a_second_reading_is_refused(target: str, method: str, door: Doorway) -> None:
    key = door.models.endpoint_for("openai", "s1").key
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n"
    back = await door.raw(head.encode())
    assert back.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 404"))
    assert not door.provider.requests


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "OPTIONS", "PATCH", "FOO", "PROPFIND"])
async def test_odd_methods_are_refused(method: str, door: Doorway) -> None:
    key = door.models.endpoint_for("openai", "s1").key
    head = f"{method} /openai/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
    assert (await door.raw(head.encode())).startswith(b"HTTP/1.1 403")
    assert not door.provider.requests


async def test_the_list_of_models_may_be_read(door: Doorway) -> None:
    assert (await door.http.get("/openai/v1/models", headers=door.headers())).status_code == 200
    assert (await door.http.get("/anthropic/v1/models?limit=5", headers=door.headers("anthropic"))).status_code == 200
    assert door.provider.requests[-1].path == "/v1/models?limit=5"
    assert not door.events("models.answered")


async def test_a_bare_address_answers_itself(door: Doorway) -> None:
    assert (await door.http.head("/anthropic")).status_code == 200
    assert (await door.http.get("/anthropic/")).status_code == 200
    assert not door.provider.requests


async def test_the_owner_opens_a_path_by_name(tmp_path: Path) -> None:
    async with doorway(tmp_path, allow=("POST /v1/files", "GET /v1/files/*")) as door:
        for method, path, status in (
            ("POST", "/openai/v1/files", 404),  # the scripted model has none, and says so itself
            ("GET", "/openai/v1/files/f1", 404),
            ("DELETE", "/openai/v1/files/f1", 403),
            ("POST", "/openai/v1/files/f1", 403),
        ):
            answer = await door.http.request(method, path, headers=door.headers())
            assert answer.status_code == status
        assert [received.key for received in door.provider.requests] == [KEY, KEY]


@pytest.mark.parametrize(
    "reach",
    [
        {"background": True},
        {"mcp_servers": [{"type": "url", "url": "https://thief.example.org"}]},
        {"tools": [{"type": "mcp", "server_url": "https://thief.example.org"}]},
        {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]},
        {"tools": [{"urlContext": {}}]},
        {"input": [{"content": [{"type": "input_image", "image_url": "https://thief.example.org/?d=secret"}]}]},
        {"input": [{"content": [{"type": "image_url", "image_url": {"url": " HTTPS://thief.example.org"}}]}]},
        {"input": [{"content": [{"type": "input_file", "file_url": "http://thief.example.org"}]}]},
        {"input": [{"content": [{"source": {"type": "url", "url": "https://thief.example.org/x.png"}}]}]},
        {"contents": [{"parts": [{"fileData": {"fileUri": "https://thief.example.org/x"}}]}]},
    ],
)
async def test_a_question_that_makes_the_provider_call_others_is_refused(
    reach: dict[str, object], door: Doorway
) -> None:
    path, body = question("responses")
    answer = await door.http.post(path, json=body | reach, headers=door.headers())
    assert answer.status_code == 403
    assert not door.provider.requests


async def test_pictures_and_words_about_addresses_pass(door: Doorway) -> None:
    path, body = question("responses", 'SAY {"url": "https://example.org"}')
    body["tools"] = [{"type": "function", "name": "fetch", "parameters": {"properties": {"url": {"type": "string"}}}}]
    body["input"] = [
        {"role": "user", "content": [{"type": "input_text", "text": 'SAY x {"type": "url", "url": "https://a.org"}'}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    ]
    assert (await door.http.post(path, json=body, headers=door.headers())).status_code == 200


async def test_the_owner_may_let_the_provider_fetch(tmp_path: Path) -> None:
    async with doorway(tmp_path, allow=("urls",)) as door:
        path, body = question("messages")
        body["messages"][0]["content"] = [{"type": "image", "source": {"type": "url", "url": "https://example.org/x"}}]
        assert (await door.http.post(path, json=body, headers=door.headers("anthropic"))).status_code == 200


async def test_a_key_that_is_said_twice_is_read_once(door: Doorway) -> None:
    """What the provider reads is what was checked here, not another reading of the same bytes."""
    body = b'{"model": "a", "model": "b", "messages": [], "stream": true, "stream": false}'
    await door.http.post("/openai/v1/chat/completions", content=body, headers=door.headers())
    assert door.provider.requests[-1].body == b'{"model":"b","messages":[],"stream":false}'


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", b'{"messages": []}', b"[" * 100_000])
async def test_a_body_that_is_no_question_is_refused(body: bytes, door: Doorway) -> None:
    answer = await door.http.post("/openai/v1/chat/completions", content=body, headers=door.headers())
    assert answer.status_code == 400
    assert json.loads(answer.text)["error"]["code"] == "models_malformed"
    assert not door.provider.requests
