"""Only model requests are forwarded, however the path is spelled."""

import json
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness, build_request, run_gateway

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
async def test_a_request_that_uses_no_model_is_refused(method: str, path: str, gateway: GatewayHarness) -> None:
    provider = path.split("/")[1]
    answer = await gateway.http.request(method, path, json={}, headers=gateway.headers(provider))
    assert answer.status_code == 403
    assert answer.headers["x-freehold-refused"] == "models.closed"
    assert not gateway.provider.requests


@pytest.mark.parametrize("target", ODD)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_an_ambiguous_path_is_refused(target: str, method: str, gateway: GatewayHarness) -> None:
    key = gateway.models.endpoint_for("openai", "s1").key
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n"
    back = await gateway.raw(head.encode())
    assert back.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 404"))
    assert not gateway.provider.requests


@pytest.mark.parametrize("query", ["alt=proto", "alt=media", "alt=sse&alt=proto", "alt=%70roto", "alt"])
async def test_a_response_whose_counts_cannot_be_read_is_not_asked_for(query: str, gateway: GatewayHarness) -> None:
    path, body = build_request("gemini")
    answer = await gateway.http.post(f"{path}?{query}", json=body, headers=gateway.headers("gemini"))
    assert (answer.status_code, answer.headers["x-freehold-refused"]) == (400, "models.malformed")
    assert "alt=sse or alt=json" in answer.json()["error"]["message"]
    assert not gateway.provider.requests


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "OPTIONS", "PATCH", "FOO", "PROPFIND"])
async def test_other_methods_are_refused(method: str, gateway: GatewayHarness) -> None:
    key = gateway.models.endpoint_for("openai", "s1").key
    head = f"{method} /openai/v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
    assert (await gateway.raw(head.encode())).startswith(b"HTTP/1.1 403")
    assert not gateway.provider.requests


async def test_the_list_of_models_may_be_read(gateway: GatewayHarness) -> None:
    assert (await gateway.http.get("/openai/v1/models", headers=gateway.headers())).status_code == 200
    assert (
        await gateway.http.get("/anthropic/v1/models?limit=5", headers=gateway.headers("anthropic"))
    ).status_code == 200
    assert gateway.provider.requests[-1].path == "/v1/models?limit=5"
    assert not gateway.events("models.answered")


async def test_the_base_url_responds_without_the_provider(gateway: GatewayHarness) -> None:
    assert (await gateway.http.head("/anthropic")).status_code == 200
    assert (await gateway.http.get("/anthropic/")).status_code == 200
    assert not gateway.provider.requests


async def test_the_owner_can_allow_a_path(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, allow=("POST /v1/files", "GET /v1/files/*")) as gateway:
        for method, path, status in (
            ("POST", "/openai/v1/files", 404),  # the scripted model has none, and says so itself
            ("GET", "/openai/v1/files/f1", 404),
            ("DELETE", "/openai/v1/files/f1", 403),
            ("POST", "/openai/v1/files/f1", 403),
        ):
            answer = await gateway.http.request(method, path, headers=gateway.headers())
            assert answer.status_code == status
        assert [received.key for received in gateway.provider.requests] == [KEY, KEY]


async def test_images_and_text_about_urls_pass(gateway: GatewayHarness) -> None:
    path, body = build_request("responses", 'SAY {"url": "https://example.org"}')
    body["tools"] = [{"type": "function", "name": "fetch", "parameters": {"properties": {"url": {"type": "string"}}}}]
    body["input"] = [
        {"role": "user", "content": [{"type": "input_text", "text": 'SAY x {"type": "url", "url": "https://a.org"}'}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    ]
    assert (await gateway.http.post(path, json=body, headers=gateway.headers())).status_code == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", b'{"messages": []}', b"[" * 100_000])
async def test_a_body_that_is_not_a_model_request_is_refused(body: bytes, gateway: GatewayHarness) -> None:
    answer = await gateway.http.post("/openai/v1/chat/completions", content=body, headers=gateway.headers())
    assert answer.status_code == 400
    assert json.loads(answer.text)["error"]["code"] == "models_malformed"
    assert not gateway.provider.requests
