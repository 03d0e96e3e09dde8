"""Header fields of an agent reach a provider only when they are known to choose nothing."""

from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness, build_request
from tests.egress.models.recording_provider import gateway_to, recording_provider

HARMFUL = {
    # to another host, with the owner's key
    "x-portkey-custom-host": "https://thief.example.org",
    "x-portkey-config": '{"provider":"x"}',
    "Helicone-Target-Url": "https://thief.example.org",
    "Helicone-OpenAI-Api-Base": "https://thief.example.org",
    "cf-aig-custom-cost": "0",
    "X-Forwarded-Host": "thief.example.org",
    "X-Forwarded-For": "127.0.0.1",
    "Forwarded": "for=127.0.0.1",
    "X-Real-Ip": "127.0.0.1",
    # another request than the one that was checked
    "X-Original-Uri": "/v1/files",
    "X-Original-Url": "/v1/files",
    "X-Rewrite-Url": "/v1/files",
    "X-HTTP-Method-Override": "DELETE",
    "Prefer": "respond-async",
    "Range": "bytes=0-1",
    "Idempotency-Key": "of-another",
    "x-gemini-service-tier": "priority",
    # another account
    "OpenAI-Organization": "org-thief",
    "OpenAI-Project": "proj-thief",
    "X-Goog-User-Project": "thief",
    "anthropic-workspace-id": "thief",
    "anthropic_workspace_id": "thief",
    "x-litellm-api-key": "thief",
    "Ocp-Apim-Subscription-Key": "thief",
    "api-key": "thief",
    "Cookie": "a=b",
    # a response without its token counts
    "X-Goog-FieldMask": "candidates",
    "X-Goog_FieldMask": "candidates",
    "A-Field-Of-Tomorrow": "1",
}
HARMLESS = {
    "user-agent": "claude-cli/2",
    "accept": "application/json, text/event-stream",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219",
    "x-app": "cli",
    "x-claude-code-session-id": "1",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
    "openai-beta": "responses=experimental",
    "originator": "codex_cli_rs",
    "session_id": "1",
    "x-codex-turn-metadata": "{}",
    "x-opencode-session": "1",
    "x-goog-api-client": "google-genai-sdk/1",
}


async def _arrived(gateway: GatewayHarness, headers: dict[str, str]) -> dict[str, str]:
    path, body = build_request("chat")
    sent = await gateway.http.post(path, json=body, headers={**gateway.headers(), **headers})
    assert sent.status_code == 200
    return {name.lower(): value for name, value in gateway.provider.requests[-1].headers.items()}


@pytest.mark.parametrize("name", HARMFUL)
async def test_a_header_that_could_choose_host_request_account_or_response_is_left_out(
    name: str, gateway: GatewayHarness
) -> None:
    arrived = await _arrived(gateway, {name: HARMFUL[name]})
    assert not {name.lower(), name.lower().replace("_", "-")} & arrived.keys()
    assert HARMFUL[name] not in arrived.values() or HARMFUL[name] in ("1", "0")


async def test_what_the_sdks_and_the_shipped_agents_say_about_themselves_arrives(gateway: GatewayHarness) -> None:
    assert HARMLESS.items() <= (await _arrived(gateway, HARMLESS)).items()


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/x-protobuf",
        "text/plain",
    ],
)
async def test_a_checked_body_is_sent_as_the_json_that_it_is(kind: str, tmp_path: Path) -> None:
    """Whatever the agent calls it, a server reads what was checked."""
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        _path, body = build_request("chat")
        for path in ("/openai/v1/chat/completions", "/openai/v1/messages/count_tokens"):
            headers = {**gateway.headers(), "content-type": kind}
            await gateway.http.request("POST", path, json=body, headers=headers)
        assert len(provider.requests) == 2
        for request in provider.requests:
            assert request.head.lower().count(b"content-type") == 1
            assert b"\r\nContent-Type: application/json\r\n" in request.head
            assert request.head.count(KEY.encode()) == 1


@pytest.mark.parametrize("accept", ["application/x-protobuf", "application/json;alt=proto", "text/csv, */*", "image/*"])
async def test_a_response_in_a_format_without_readable_counts_cannot_be_asked_for(
    accept: str, gateway: GatewayHarness
) -> None:
    assert "accept" not in await _arrived(gateway, {"accept": accept})


async def test_on_a_path_that_the_owner_allowed_the_body_keeps_its_type(tmp_path: Path) -> None:
    """Such as an upload. Fields that choose something are left out there too."""
    async with (
        recording_provider() as provider,
        gateway_to(tmp_path, provider.port, allow=["POST /v1/files"]) as gateway,
    ):
        headers = {**gateway.headers(), "content-type": "multipart/form-data; boundary=x", **HARMFUL}
        await gateway.http.post("/openai/v1/files", content=b"--x--", headers=headers)
        head = provider.requests[-1].head.lower()
        assert b"\r\ncontent-type: multipart/form-data; boundary=x\r\n" in head
        assert not [name for name in HARMFUL if f"\r\n{name.lower()}:".encode() in head]
