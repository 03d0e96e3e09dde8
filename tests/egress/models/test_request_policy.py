"""What a provider would fetch or keep is refused, wherever it stands and however it is written."""

import inspect
import json
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

import pydantic_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.egress.models.forbidden_requests import (
    DATA_URL,
    FORBIDDEN,
    PATHS,
    THIEF,
    draw_forbidden,
    draw_mixed,
    find_reach,
    harmless,
    odd_url,
    spell,
    submit,
)
from tests.egress.models.gateway_harness import GatewayHarness, run_gateway

from freehold.egress.models.field_policy import ByType, Fields
from freehold.egress.models.paths import RequestForm
from freehold.egress.models.request_forms import known_fields
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import FEATURES

SEEDS = st.integers(0, 2**32)
EVERYTHING = tuple(FEATURES)


@pytest.mark.parametrize("form", list(PATHS))
def test_what_agents_really_send_passes(form: RequestForm) -> None:
    """Words about URLs, pictures inside, tools and their calls."""
    content = harmless(form)
    sent = json.loads(submit(form, json.dumps(content).encode()).body)
    assert {name: sent[name] for name in content} == content
    assert find_reach(sent) is None


def test_the_mark_of_copilot_in_a_loaded_message_passes() -> None:
    content = harmless("chat")
    content["messages"][0]["__copilotMessageSource"] = {"kind": "user"}
    assert json.loads(submit("chat", json.dumps(content).encode()).body)["messages"] == content["messages"]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(PATHS)), SEEDS)
def test_a_harmless_request_passes_in_any_spelling(form: RequestForm, seed: int) -> None:
    content = harmless(form)
    sent = json.loads(submit(form, spell(content, Random(seed))).body)
    assert {name: sent[name] for name in content} == content


@settings(max_examples=400, deadline=None)
@given(SEEDS)
def test_a_forbidden_feature_is_refused_at_any_place_and_in_any_spelling(seed: int) -> None:
    random = Random(seed)
    form, content, feature = draw_forbidden(random)
    with pytest.raises(FreeholdError) as refused:
        submit(form, spell(content, random))
    assert refused.value.code in ("models.reaches-out", "models.malformed")
    if refused.value.code == "models.reaches-out":
        assert f'"{feature}"' in refused.value.hint


@pytest.mark.parametrize(
    ("form", "number"), [(form, number) for form, plants in FORBIDDEN.items() for number in range(len(plants))]
)
def test_every_forbidden_feature_is_refused_by_its_name(form: RequestForm, number: int) -> None:
    """So that each is tried at least once, not only when chance finds it."""
    plant, feature = FORBIDDEN[form][number]
    content = harmless(form)
    plant(content, Random(1))
    with pytest.raises(FreeholdError) as refused:
        submit(form, json.dumps(content).encode())
    assert refused.value.code == "models.reaches-out"
    assert f'"{feature}"' in refused.value.hint
    others = tuple(word for word in FEATURES if word != feature)
    with pytest.raises(FreeholdError):
        submit(form, json.dumps(content).encode(), allow=others)


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_the_oracle_finds_nothing_in_what_is_sent(seed: int) -> None:
    """Parts of forbidden requests are put anywhere; a second parser reads what was let through."""
    random = Random(seed)
    form, content = draw_mixed(random)
    try:
        sent = submit(form, spell(content, random)).body
    except FreeholdError:
        return
    assert find_reach(pydantic_core.from_json(sent)) is None


@settings(deadline=None)
@given(SEEDS)
def test_no_odd_address_counts_as_content(seed: int) -> None:
    content = harmless("chat")
    content["messages"][1]["content"][1]["image_url"]["url"] = odd_url(Random(seed))
    with pytest.raises(FreeholdError) as refused:
        submit("chat", json.dumps(content).encode())
    assert refused.value.code == "models.reaches-out"


@pytest.mark.parametrize(
    "body",
    [
        rb'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image\u005furl", "image\u005furl": {"url": "https://x.org"}}]}]}',
        rb'{"model": "m", "messages": [{"role": "user", "content": [{"type": "file", "file": {"file\u005fdata": "https://x.org"}}]}]}',
        rb'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "\u0001https://x.org"}}]}]}',
        rb'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ht\ttps://x.org"}}]}]}',
        rb'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "//x.org"}}]}]}',
        rb'{"model": "m", "messages": [], "tools": [[{"type": "web_search"}]]}',
        rb'{"model": "m", "messages": [], "background": 1}',
    ],
)
def test_the_spellings_of_the_break_in_are_refused(body: bytes) -> None:
    with pytest.raises(FreeholdError):
        submit("chat", body)


@pytest.mark.parametrize("value", [True, 1, 1.0, "true", "1", [], {}, 0, "", "false"])
def test_only_false_switches_the_background_off(value: object) -> None:
    content = harmless("responses") | {"background": value}
    with pytest.raises(FreeholdError) as refused:
        submit("responses", json.dumps(content).encode())
    assert '"background"' in refused.value.hint


def test_a_response_is_not_stored_unless_the_owner_allows_it() -> None:
    """OpenAI keeps it for a month when the field is absent."""
    content = harmless("responses")
    for store in (None, False):
        body = json.dumps(content | {"store": store}).encode()
        assert json.loads(submit("responses", body).body)["store"] is False
    del content["store"]
    assert json.loads(submit("responses", json.dumps(content).encode()).body)["store"] is False
    assert "store" not in json.loads(submit("responses", json.dumps(content).encode(), allow=("stored",)).body)
    compact = submit("responses", json.dumps(content).encode(), path="/p/v1/responses/compact")
    assert "store" not in json.loads(compact.body)


@pytest.mark.parametrize("form", list(PATHS))
def test_an_unknown_field_is_refused_by_its_name_and_can_be_allowed(form: RequestForm) -> None:
    body = json.dumps(harmless(form) | {"teleport": {"to": f"https://{THIEF}"}}).encode()
    with pytest.raises(FreeholdError) as refused:
        submit(form, body, allow=EVERYTHING)
    assert refused.value.code == "models.unknown-field"
    assert "'teleport'" in refused.value.message
    assert "field:teleport" in refused.value.hint
    assert b"teleport" in submit(form, body, allow=("field:teleport",)).body


def test_an_unknown_field_deep_inside_is_named_with_its_path() -> None:
    content = harmless("messages")
    content["messages"][0]["content"][0]["colour"] = "red"
    with pytest.raises(FreeholdError, match=r"'messages\.content\.colour'"):
        submit("messages", json.dumps(content).encode())
    assert submit("messages", json.dumps(content).encode(), allow=("field:messages.content.colour",)).body
    with pytest.raises(FreeholdError):
        submit("messages", json.dumps(content).encode(), allow=("field:colour", "field:content.colour"))


@pytest.mark.parametrize(("form", "place"), [("chat", "tools"), ("responses", "tools"), ("responses", "input")])
def test_an_unknown_type_is_refused_by_its_name_and_can_be_allowed(form: RequestForm, place: str) -> None:
    content = harmless(form)
    content[place].append({"type": "x_search", "filters": {}})
    with pytest.raises(FreeholdError) as refused:
        submit(form, json.dumps(content).encode(), allow=EVERYTHING)
    assert refused.value.code == "models.unknown-field"
    assert "'x_search'" in refused.value.message
    assert submit(form, json.dumps(content).encode(), allow=("type:x_search",)).body


@pytest.mark.parametrize("twice", [("fileData", "file_data"), ("inlineData", "inline_data")])
def test_one_field_in_two_spellings_is_refused(twice: tuple[str, str]) -> None:
    """Google reads both as one, and which of the two wins is not said."""
    content = harmless("generate")
    content["contents"][0]["parts"].append({key: {"mimeType": "image/png"} for key in twice})
    with pytest.raises(FreeholdError, match="two spellings"):
        submit("generate", json.dumps(content).encode())


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8001/",
        "http://localhost/x",
        "http://169.254.169.254/latest",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://10.0.0.7/",
        "http://keeper.internal/",
        "https://user@example.org/",
        "https://example.org\\@127.0.0.1/",
        "file:///etc/passwd",
        "gopher://example.org",
        "https://exa\tmple.org",
        "/etc/passwd",
    ],
)
def test_where_urls_are_allowed_only_public_ones_pass(address: str) -> None:
    """A model server on the owner's own machine must not be pointed at that machine."""
    content = harmless("chat")
    content["messages"][1]["content"][1]["image_url"]["url"] = address
    with pytest.raises(FreeholdError, match="public host"):
        submit("chat", json.dumps(content).encode(), allow=("urls",))
    content["messages"][1]["content"][1]["image_url"]["url"] = "https://example.org:8443/x.png?a=1"
    assert submit("chat", json.dumps(content).encode(), allow=("urls",)).body


@pytest.mark.parametrize(
    "reference", ["http://thief.example.org/s.json", "//thief.example.org", "other.json", "\thttp:"]
)
def test_a_schema_refers_only_to_itself(reference: str) -> None:
    """Some servers fetch the documents that a schema names."""
    content = harmless("chat")
    parameters = content["tools"][0]["function"]["parameters"]
    content["tools"][0]["function"]["parameters"] = parameters | {"properties": {"x": {"items": {"$ref": reference}}}}
    with pytest.raises(FreeholdError, match="its own parts"):
        submit("chat", json.dumps(content).encode())
    own = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/$defs/x",
        "$defs": {"x": {"type": "string"}},
    }
    content["tools"][0]["function"]["parameters"] = own
    assert submit("chat", json.dumps(content).encode()).body


@pytest.mark.parametrize("name", ["m\u200b:online", " m", "m\n", "", "m" * 201, "m:\uff4fnline"])
def test_the_name_of_a_model_is_plain_text(name: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        submit("chat", json.dumps(harmless("chat") | {"model": name}).encode())
    assert refused.value.code == "models.malformed"


@pytest.mark.parametrize(
    "name",
    [
        "https://thief.example.org/x",
        "s3://bucket/x",
        "file:/etc/passwd",
        "FILE:x",
        "/etc/passwd",
        "//thief.example.org/x",
        "./x",
        "../../x",
        "..",
        ".hidden",
        "a/../../x",
        "a/..",
        "~/x",
        "C:\\x",
        "\\\\thief.example.org\\x",
    ],
)
def test_an_address_or_a_path_is_not_the_name_of_a_model(name: str) -> None:
    """A server on the owner's machine would load it."""
    for content in (harmless("chat") | {"model": name}, harmless("chat") | {"models": ["gpt-4o", name]}):
        with pytest.raises(FreeholdError, match="not the name of a model"):
            submit("chat", json.dumps(content).encode(), allow=EVERYTHING)


@pytest.mark.parametrize(
    "name", ["org/model", "accounts/x/models/y", "qwen2.5:7b", "hf.co/a/b-GGUF:Q4_K_M", "~a/b-latest", "a..b", "a@1"]
)
def test_names_of_models_with_slashes_and_dots_pass(name: str) -> None:
    assert submit("chat", json.dumps(harmless("chat") | {"model": name}).encode()).model == name


@pytest.mark.parametrize("form", ["chat", "responses"])
@pytest.mark.parametrize("models", [["m"] * 9, ["m"] * 5000, [1], ["m", None]])
def test_a_request_names_at_most_eight_other_models(form: RequestForm, models: list[object]) -> None:
    """Each name is looked up in the price table; fifteen kilobytes of them stopped the gateway for seconds."""
    with pytest.raises(FreeholdError, match="at most 8 names"):
        submit(form, json.dumps(harmless(form) | {"models": models}).encode())
    assert len(submit(form, json.dumps(harmless(form) | {"models": ["m"] * 8}).encode()).alternatives) == 8


@pytest.mark.parametrize("query", ["beta=/compact", "api-version=/compact", "beta=true&beta=/v1/responses/compact"])
def test_a_query_does_not_make_a_response_a_stored_one(query: str) -> None:
    content = harmless("responses")
    del content["store"]
    sent = submit("responses", json.dumps(content).encode(), path=f"/p/v1/responses?{query}")
    assert json.loads(sent.body)["store"] is False


def _nested(kind: str, depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(depth):
        if kind == "namespace":
            inner = {"type": kind, "name": "n", "description": "d", "tools": [inner]}
        else:
            inner = {"type": kind, "tool_use_id": "t", "content": [inner]}
    return inner


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/openai/v1/responses", {"model": "m", "input": "x", "tools": [_nested("namespace", 300)]}),
        (
            "/anthropic/v1/messages",
            {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [_nested("tool_result", 300)]}]},
        ),
    ],
)
async def test_a_request_that_is_nested_too_deep_is_refused_in_words(
    path: str, content: dict[str, Any], gateway: GatewayHarness
) -> None:
    headers = gateway.headers(path.split("/")[1])
    answer = await gateway.http.post(path, json=content, headers=headers)
    assert answer.status_code == 400
    assert answer.headers["x-freehold-refused"] == "models.malformed"
    assert "nested too deep" in answer.json()["error"]["message"]
    assert not gateway.provider.requests


async def test_a_refusal_reaches_the_agent_and_not_the_provider(gateway: GatewayHarness) -> None:
    content = harmless("responses") | {"tools": [{"type": "web_search"}], "model": "gpt-4o"}
    answer = await gateway.http.post("/openai/v1/responses", json=content, headers=gateway.headers())
    assert answer.status_code == 403
    assert answer.headers["x-freehold-refused"] == "models.reaches-out"
    assert "the provider would search the web" in answer.json()["error"]["message"]
    assert not gateway.provider.requests


async def test_the_owner_may_let_the_provider_fetch_and_search(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, allow=("urls", "web-search")) as gateway:
        content = harmless("messages")
        content["messages"][0]["content"].append(
            {"type": "image", "source": {"type": "url", "url": "https://example.org/x"}}
        )
        content["tools"].append({"type": "web_search_20250305", "name": "web_search"})
        answer = await gateway.http.post("/anthropic/v1/messages", json=content, headers=gateway.headers("anthropic"))
        assert answer.status_code == 200


async def test_a_count_of_tokens_is_checked_too(gateway: GatewayHarness) -> None:
    """The provider would fetch the picture to count it."""
    content = harmless("message-tokens")
    content["messages"][0]["content"][1]["source"] = {"type": "url", "url": f"https://{THIEF}"}
    path = "/anthropic/v1/messages/count_tokens"
    answer = await gateway.http.post(path, json=content, headers=gateway.headers("anthropic"))
    assert answer.status_code == 403
    assert not gateway.provider.requests


async def test_parameters_of_the_query_that_hide_the_usage_are_dropped(gateway: GatewayHarness) -> None:
    path = (
        "/gemini/v1beta/models/gemini-2.5-pro:generateContent?alt=json&fields=candidates&f%69elds=candidates&callback=x"
    )
    await gateway.http.post(path, json=harmless("generate"), headers=gateway.headers("gemini"))
    assert gateway.provider.requests[-1].path.endswith(":generateContent?alt=json")


# The lists against the packages of the providers: a field that they know is known here, or refused on purpose.

REFUSED_CHAT: set[str] = set()
REFUSED_RESPONSES: set[str] = set()
REFUSED_MESSAGES = {"fallbacks", "fallback_credit_token"}
"""Other models would respond, at prices of their own."""


def _names(form: RequestForm) -> set[str]:
    check = known_fields(form)
    assert isinstance(check, Fields)
    return set(check.known)


def test_every_field_of_the_openai_package_is_known_or_refused_on_purpose() -> None:
    from openai.types import completion_create_params, embedding_create_params
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import input_token_count_params, response_compact_params, response_create_params

    for form, shape, refused in (
        ("chat", chat.CompletionCreateParamsBase, REFUSED_CHAT),
        ("completion", completion_create_params.CompletionCreateParamsBase, set()),
        ("embedding", embedding_create_params.EmbeddingCreateParams, set()),
        ("responses", response_create_params.ResponseCreateParamsBase, REFUSED_RESPONSES),
        ("responses", response_compact_params.ResponseCompactParams, REFUSED_RESPONSES),
        ("response-tokens", input_token_count_params.InputTokenCountParams, REFUSED_RESPONSES),
    ):
        assert set(shape.__annotations__) - _names(form) == refused, form  # type: ignore[arg-type]


def test_every_field_of_the_anthropic_package_is_known_or_refused_on_purpose() -> None:
    from anthropic.types.beta import message_count_tokens_params, message_create_params

    assert set(message_create_params.MessageCreateParamsBase.__annotations__) - _names("messages") == REFUSED_MESSAGES
    assert set(message_count_tokens_params.MessageCountTokensParams.__annotations__) <= _names("message-tokens")


def _types_of(union: Any) -> set[str]:
    """The values of `type` of the members of a union of the packages' dictionaries."""
    found = set()
    for member in get_args(union):
        if inspect.isclass(member) and hasattr(member, "__total__"):
            hint = get_type_hints(member).get("type")
            found |= {value for part in (hint, *get_args(hint)) for value in get_args(part) if isinstance(value, str)}
            found |= {value for value in get_args(hint) if isinstance(value, str)}
    return found


def test_every_tool_and_item_of_the_packages_is_known_or_refused_on_purpose() -> None:
    from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam
    from openai.types.responses import ToolParam
    from openai.types.responses.response_input_param import ResponseInputItemParam

    from freehold.egress.models import messages_fields, responses_fields

    def unknown(check: ByType, union: Any) -> set[str]:
        without_version = {kind.rsplit("_20", 1)[0] if check.versions else kind for kind in _types_of(union)}
        assert without_version
        return without_version - set(check.cases)

    assert get_origin(ToolParam) is not None
    assert unknown(responses_fields.TOOL, ToolParam) == set()
    assert unknown(responses_fields.ITEM, ResponseInputItemParam) == set()
    # Another model would respond in both, at a price of its own.
    assert unknown(messages_fields.TOOL, BetaToolUnionParam) == {"advisor"}
    assert unknown(messages_fields.BLOCK, BetaContentBlockParam) == {"advisor_tool_result", "fallback"}


def test_a_picture_inside_passes_as_the_packages_send_it() -> None:
    content = harmless("responses")
    content["input"][3]["output"] = [{"type": "input_image", "image_url": DATA_URL}]
    assert submit("responses", json.dumps(content).encode()).body
