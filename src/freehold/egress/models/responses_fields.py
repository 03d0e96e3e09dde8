"""The known fields of OpenAI's Responses API. Source: the openai package, and what Codex sends."""

from freehold.egress.models.chat_fields import CACHE_OPTIONS, GRAMMAR, MODERATION, PROVIDER_CHOICE
from freehold.egress.models.field_policy import (
    ByType,
    Check,
    Each,
    Fields,
    Review,
    TextOr,
    data,
    encoded,
    encoded_or_url,
    fields,
    needs,
    scalar,
    schema,
    url,
)

_MARK: dict[str, Check] = {"prompt_cache_breakpoint": fields("mode ttl")}
_PART = ByType(
    {
        "input_text": fields("type text") | _MARK,
        "input_image": fields("type detail", image_url=url, file_id=needs("stored")) | _MARK,
        "input_file": fields("type detail filename", file_data=encoded_or_url, file_url=url, file_id=needs("stored"))
        | _MARK,
        "input_audio": fields("type", input_audio=fields("format", data=encoded)),
        "output_text": fields("type text", annotations=data, logprobs=data),
        "refusal": fields("type refusal"),
        "summary_text": fields("type text"),
        "reasoning_text": fields("type text"),
        "text": fields("type text"),
        "encrypted_content": fields("type encrypted_content"),
    }
)
_CONTENT = TextOr(Each(_PART))


_HOSTED_TOOLS: dict[str, Check] = {
    "web_search": needs("web-search"),
    "web_search_2025_08_26": needs("web-search"),
    "web_search_preview": needs("web-search"),
    "web_search_preview_2025_03_11": needs("web-search"),
    "file_search": needs("stored"),
    "mcp": needs("mcp"),
    "code_interpreter": needs("code-execution"),
    "programmatic_tool_calling": needs("code-execution"),
    "image_generation": needs("image-generation"),
}
"""Tools that the provider itself carries out."""


def _tools(value: object, review: Review) -> None:
    """Tools may hold tools."""
    Each(TOOL)(value, review)


def _environment(value: object, review: Review) -> None:
    """Where a shell runs: with the client, or in a container of the provider."""
    if isinstance(value, dict) and value.get("type") == "local":
        fields("type", skills=Each(fields("name description path")))(value, review)
    else:
        review.need("code-execution")


def _shell(value: object, review: Review) -> None:
    if isinstance(value, dict) and value.get("environment") is None:
        review.need("code-execution")
    fields("type", environment=_environment, allowed_callers=data)(value, review)


TOOL = ByType(
    {
        **_HOSTED_TOOLS,
        "function": fields(
            "type name description strict async defer_loading",
            parameters=schema,
            output_schema=schema,
            allowed_callers=data,
        ),
        "custom": fields("type name description async defer_loading", format=GRAMMAR, allowed_callers=data),
        "local_shell": fields("type"),
        "shell": _shell,
        "apply_patch": fields("type", allowed_callers=data),
        "computer": fields("type"),
        "computer_use_preview": fields("type display_height display_width environment"),
        "namespace": fields("type name description", tools=_tools),
        "tool_search": fields("type description execution", parameters=schema),
    }
)
_NAMED_TOOL = ByType(
    {
        **_HOSTED_TOOLS,
        **dict.fromkeys(
            [
                "function",
                "custom",
                "local_shell",
                "shell",
                "apply_patch",
                "computer",
                "computer_use",
                "computer_use_preview",
                "namespace",
                "tool_search",
                "auto",
                "none",
                "required",
            ],
            fields("type name"),
        ),
    }
)
_TOOL_CHOICE = TextOr(ByType({**_NAMED_TOOL.cases, "allowed_tools": fields("type mode", tools=Each(_NAMED_TOOL))}))
_MESSAGE = fields("type role id status phase name", content=_CONTENT)


def _untyped_item(value: object, review: Review) -> None:
    """A message, or, with an id alone, something that the provider stored."""
    if isinstance(value, dict) and "role" in value:
        _MESSAGE(value, review)
    else:
        review.need("stored")


def _item(scalars: str = "", **known: Check) -> Fields:
    return fields("type id status call_id " + scalars, caller=fields("type caller_id"), **known)


_FORMAT = ByType(
    {
        "text": fields("type"),
        "json_object": fields("type"),
        "json_schema": fields("type name description strict", schema=schema),
        "grammar": fields("type syntax definition grammar"),
    }
)
_TEXT = fields("verbosity", format=_FORMAT)
_REASONING = fields("effort summary generate_summary context mode max_tokens enabled exclude")
ITEM = ByType(
    {
        "message": _MESSAGE,
        "function_call": _item("name arguments namespace async"),
        "function_call_output": _item("name namespace", output=_CONTENT),
        "custom_tool_call": _item("name input namespace async"),
        "custom_tool_call_output": _item("name namespace", output=_CONTENT),
        "reasoning": _item("encrypted_content signature format", summary=Each(_PART), content=Each(_PART)),
        "compaction": _item("encrypted_content"),
        "compaction_summary": _item("encrypted_content"),
        "compaction_trigger": _item(),
        "configuration_update": _item(reasoning=_REASONING, text=_TEXT),
        "local_shell_call": _item(action=data),
        "local_shell_call_output": _item("output"),
        "shell_call": _item(action=data, environment=_environment),
        "shell_call_output": _item("max_output_length", output=data),
        "apply_patch_call": _item(operation=data),
        "apply_patch_call_output": _item("output"),
        "computer_call": _item(action=data, actions=data, pending_safety_checks=data),
        "computer_call_output": _item(
            output=fields("type", image_url=url, file_id=needs("stored")), acknowledged_safety_checks=data
        ),
        "tool_search_call": _item("execution", arguments=data),
        "tool_search_output": _item("execution", tools=_tools),
        "additional_tools": _item("role", tools=_tools),
        "item_reference": needs("stored"),
        "web_search_call": needs("web-search"),
        "file_search_call": needs("stored"),
        "code_interpreter_call": needs("code-execution"),
        "program": needs("code-execution"),
        "program_output": needs("code-execution"),
        "image_generation_call": needs("image-generation"),
        "mcp_list_tools": needs("mcp"),
        "mcp_call": needs("mcp"),
        "mcp_approval_request": needs("mcp"),
        "mcp_approval_response": needs("mcp"),
    },
    untyped=_untyped_item,
)

RESPONSES = fields(
    """model stream instructions max_output_tokens max_tool_calls parallel_tool_calls prompt_cache_key
    prompt_cache_retention safety_identifier service_tier temperature top_logprobs top_p truncation user personality
    frequency_penalty presence_penalty session_id route""",
    input=TextOr(Each(ITEM)),
    tools=_tools,
    tool_choice=_TOOL_CHOICE,
    text=_TEXT,
    reasoning=_REASONING,
    include=Each(scalar),
    metadata=data,
    client_metadata=data,
    context_management=Each(fields("type compact_threshold")),
    image=fields("context_compression"),
    access_programs=fields("cyber"),
    moderation=MODERATION,
    prompt_cache_options=CACHE_OPTIONS,
    stream_options=fields("include_obfuscation"),
    models=Each(scalar),
    provider=PROVIDER_CHOICE,
    background=needs("background", False),
    store=needs("stored", False),
    previous_response_id=needs("stored"),
    conversation=needs("stored"),
    prompt=needs("stored"),
    search_parameters=needs("web-search"),
    plugins=needs("plugins", []),
)
