"""The known fields of Anthropic's Messages API. Source: the anthropic package, and what Claude Code sends."""

from freehold.egress.models.field_policy import (
    ByType,
    Check,
    Each,
    Fields,
    Review,
    TextOr,
    data,
    encoded,
    fields,
    needs,
    scalar,
    schema,
    url,
)

_CACHED = fields("type ttl", scope=scalar)
_EFFORT = fields("effort", format=fields("type", schema=schema), task_budget=fields("type total remaining"))


def _block(scalars: str = "", **known: Check) -> Fields:
    return fields("type " + scalars, cache_control=_CACHED, **known)


def _blocks(value: object, review: Review) -> None:
    """Blocks may hold blocks."""
    TextOr(Each(BLOCK))(value, review)


def _tool(value: object, review: Review) -> None:
    TOOL(value, review)


SOURCE = ByType(
    {
        "base64": fields("type media_type", data=encoded),
        "text": fields("type media_type data"),
        "content": fields("type", content=_blocks),
        "url": fields("type", url=url),
        "file": needs("stored"),
    }
)
_CALLER = fields("type tool_id")
_HOSTED: dict[str, Check] = {
    "web_search": needs("web-search"),
    "web_fetch": needs("urls"),
    "code_execution": needs("code-execution"),
    "bash_code_execution": needs("code-execution"),
    "text_editor_code_execution": needs("code-execution"),
}
"""Tools that the provider itself carries out."""


def _server_tool(value: object, review: Review) -> None:
    """An earlier call of a tool that the provider carries out."""
    _block("id name", input=data, caller=_CALLER)(value, review)
    assert isinstance(value, dict)
    check = _HOSTED.get(str(value.get("name")))
    if check is not None:
        check(value, review)
    elif value.get("name") not in ("tool_search_tool_regex", "tool_search_tool_bm25"):
        raise review.wrong("the call of a known tool")


_CHANGE = ByType(
    {
        "tool_reference": fields("type name tool_name"),
        "tool_definition": fields("type", definition=_tool),
        "mcp_tool_reference": needs("mcp"),
        "mcp_toolset_reference": needs("mcp"),
    }
)
BLOCK = ByType(
    {
        "text": _block("text", citations=data),
        "image": _block(source=SOURCE, transformations=fields("oversized_image")),
        "document": _block("title context", source=SOURCE, citations=fields("enabled")),
        "search_result": _block("source title", content=_blocks, citations=fields("enabled")),
        "thinking": _block("thinking signature"),
        "redacted_thinking": _block("data"),
        "tool_use": _block("id name toolset_name", input=data, caller=_CALLER),
        "tool_result": _block("tool_use_id is_error toolset_name", content=_blocks),
        "tool_reference": _block("tool_name"),
        "browser_state": _block(tabs=data, state_changes=data),
        "compaction": _block("content encrypted_content signature", tool_changes=_blocks),
        "tool_addition": _block(tool=_CHANGE),
        "tool_removal": _block(tool=_CHANGE),
        "server_tool_use": _server_tool,
        "tool_search_tool_result": _block("tool_use_id", content=data),
        "web_search_tool_result": needs("web-search"),
        "web_fetch_tool_result": needs("urls"),
        "code_execution_tool_result": needs("code-execution"),
        "bash_code_execution_tool_result": needs("code-execution"),
        "text_editor_code_execution_tool_result": needs("code-execution"),
        "container_upload": needs("code-execution"),
        "mcp_tool_use": needs("mcp"),
        "mcp_tool_result": needs("mcp"),
        "mcp_tool_listing": needs("mcp"),
    }
)
_OWN_TOOL = _block(
    "name description strict defer_loading eager_input_streaming",
    input_schema=schema,
    input_examples=data,
    allowed_callers=data,
)
_CLIENT_TOOL = _block(
    "name strict defer_loading display_height_px display_width_px display_number enable_zoom max_characters",
    input_examples=data,
    allowed_callers=data,
    configs=data,
)
"""Tools that Anthropic describes and the client carries out."""
TOOL = ByType(
    {
        **_HOSTED,
        "custom": _OWN_TOOL,
        **dict.fromkeys(
            [
                "bash",
                "text_editor",
                "computer",
                "memory",
                "browser_toolset",
                "computer_toolset",
                "tool_search_tool_regex",
                "tool_search_tool_bm25",
            ],
            _CLIENT_TOOL,
        ),
        "mcp_toolset": needs("mcp"),
    },
    untyped=_OWN_TOOL,
    versions=True,
)
_EDIT = ByType(
    {
        "clear_tool_uses": fields(
            "type",
            trigger=fields("type value"),
            keep=fields("type value"),
            clear_at_least=fields("type value"),
            clear_tool_inputs=data,
            exclude_tools=data,
        ),
        "clear_thinking": fields("type", keep=TextOr(fields("type value"))),
        "compact": fields("type instructions pause_after_compaction", trigger=fields("type value")),
    },
    versions=True,
)
MESSAGES = fields(
    """model max_tokens stream temperature top_k top_p service_tier speed inference_geo user_profile_id workspace_id
    anthropic_version""",
    messages=Each(fields("role clear_at", content=_blocks, cache_control=_CACHED, output_config=_EFFORT)),
    system=_blocks,
    tools=Each(TOOL),
    tool_choice=fields("type name disable_parallel_tool_use"),
    stop_sequences=Each(scalar),
    metadata=fields("user_id"),
    thinking=fields("type budget_tokens display", block_binding=fields("prefix_mismatch_behavior")),
    output_config=_EFFORT,
    output_format=fields("type", schema=schema),
    cache_control=_CACHED,
    context_management=fields(edits=Each(_EDIT)),
    compaction=fields("type instructions"),
    diagnostics=fields("previous_message_id"),
    betas=Each(scalar),
    anthropic_beta=Each(scalar),
    container=needs("code-execution"),
    mcp_servers=needs("mcp", []),
    thread=needs("stored"),
)
