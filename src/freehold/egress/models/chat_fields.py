"""The known fields of OpenAI's chat completions, completions and embeddings, with those of compatible servers.

Sources: the openai package, OpenRouter, vLLM, llama.cpp, Ollama, Mistral, DeepSeek, Qwen, Groq, xAI and Z.ai.
"""

from freehold.egress.models.field_policy import (
    ByType,
    Check,
    Each,
    Fields,
    Review,
    TextOr,
    data,
    encoded_or_url,
    fields,
    needs,
    scalar,
    schema,
    url,
)

_SAMPLING = """
    model stream temperature top_p top_k top_a min_p n seed random_seed user frequency_penalty presence_penalty
    repetition_penalty length_penalty logprobs top_logprobs prompt_logprobs max_tokens max_completion_tokens min_tokens
    ignore_eos skip_special_tokens spaces_between_special_tokens include_stop_str_in_output use_beam_search
    early_stopping add_generation_prompt continue_final_message add_special_tokens echo service_tier priority
    cache_prompt id_slot keep_alive safe_prompt do_sample typical_p tfs_z mirostat mirostat_tau mirostat_eta
    guided_regex guided_grammar guided_decoding_backend return_token_ids request_id
"""
PROVIDER_CHOICE = fields(
    "allow_fallbacks require_parameters data_collection zdr enforce_distillable_text",
    order=Each(scalar),
    only=Each(scalar),
    ignore=Each(scalar),
    quantizations=Each(scalar),
    sort=TextOr(fields("by partition")),
    max_price=fields("prompt completion request image audio"),
)
"""By which provider OpenRouter has a request answered."""
GRAMMAR = fields("type definition syntax", grammar=fields("definition syntax"))
_BEYOND_OPENAI: dict[str, Check] = {
    "chat_template_kwargs": data,
    "guided_choice": data,
    "guided_json": schema,
    "models": Each(scalar),
    "options": fields(
        """num_ctx num_predict num_keep num_batch num_gpu num_thread temperature top_k top_p min_p typical_p seed
        repeat_last_n repeat_penalty presence_penalty frequency_penalty penalize_newline""",
        stop=data,
    ),
    "provider": PROVIDER_CHOICE,
    "reasoning": fields("effort max_tokens enabled exclude summary generate_summary"),
    "samplers": data,
    "stop_token_ids": data,
    "thinking": fields("type budget_tokens clear_thinking keep display"),
    "transforms": Each(scalar),
    "usage": fields("include"),
    "enable_search": needs("web-search", False),
    "search_options": needs("web-search"),
    "search_parameters": needs("web-search"),
    "web_search_options": needs("web-search"),
    "plugins": needs("plugins", []),
}
CACHE_OPTIONS = fields("mode ttl prewarm", comparison_response_id=needs("stored"))
MODERATION = fields("model", policy=fields(input=fields("mode"), output=fields("mode")))
_MARKS: dict[str, Check] = {
    "cache_control": fields("type ttl"),
    "prompt_cache_breakpoint": fields("mode ttl"),
}


def _part(scalars: str = "", **known: Check) -> Fields:
    return fields("type " + scalars, **known) | _MARKS


def _address(value: object, review: Review) -> None:
    """OpenAI has an object here, Mistral and others the URL itself."""
    (url if isinstance(value, str) else _ADDRESS)(value, review)


_ADDRESS = fields("detail format max_frames fps", url=url)
PART = ByType(
    {
        "text": _part("text", annotations=data),
        "refusal": _part("refusal"),
        "thinking": _part("closed signature", thinking=data),
        "image_url": _part("detail", image_url=_address),
        "video_url": _part(video_url=_address),
        "audio_url": _part(audio_url=_address),
        "document_url": _part("document_name", document_url=url),
        "input_audio": _part(input_audio=fields("format", data=encoded_or_url)),
        "file": _part(file=fields("filename", file_data=encoded_or_url, file_id=needs("stored"))),
    }
)
_CONTENT = TextOr(Each(PART))
_CALLED: dict[str, Check] = {"extra_content": data}
_FUNCTION_CALL = fields("id type index thought_signature", function=fields("name arguments")) | _CALLED
_CALL = ByType(
    {"function": _FUNCTION_CALL, "custom": fields("id type index", custom=fields("name input"))},
    untyped=_FUNCTION_CALL,
)
MESSAGE = fields(
    """role name refusal tool_call_id reasoning_content reasoning reasoning_text reasoning_opaque prefix partial
    is_error""",
    content=_CONTENT,
    tool_calls=Each(_CALL),
    function_call=fields("name arguments"),
    audio=needs("stored"),
    annotations=data,
    images=Each(PART),
    reasoning_details=data,
    cache_control=fields("type ttl"),
    extra_content=data,
    __copilotMessageSource=data,  # a mark that Copilot leaves in what it has loaded
)
_FUNCTION = fields("name description strict", parameters=schema)
TOOL = ByType(
    {
        "function": fields("type", function=_FUNCTION, cache_control=fields("type ttl")),
        "custom": fields("type", custom=fields("name description", format=GRAMMAR)),
    }
)
TOOL_CHOICE = TextOr(
    ByType(
        {
            "function": fields("type", function=fields("name")),
            "custom": fields("type", custom=fields("name")),
            "allowed_tools": fields(
                "type",
                allowed_tools=fields(
                    "mode",
                    tools=Each(
                        ByType(
                            {
                                "function": fields("type", function=fields("name")),
                                "custom": fields("type", custom=fields("name")),
                            }
                        )
                    ),
                ),
            ),
            "auto": fields("type"),
            "any": fields("type"),
            "none": fields("type"),
            "required": fields("type"),
            "tool": fields("type name"),
        }
    )
)
RESPONSE_FORMAT = ByType(
    {
        "text": fields("type"),
        "json_object": fields("type", schema=schema),
        "json_schema": fields("type", json_schema=fields("name description strict", schema=schema)),
    }
)

CHAT = (
    fields(
        _SAMPLING
        + """
        parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning_effort reasoning_format reasoning_split
        include_reasoning safety_identifier session_id verbosity route prompt_mode enable_thinking thinking_budget
        think tool_stream thinking_token_budget
        """,
        messages=Each(MESSAGE),
        tools=Each(TOOL),
        tool_choice=TOOL_CHOICE,
        functions=Each(_FUNCTION),
        function_call=TextOr(fields("name")),
        response_format=RESPONSE_FORMAT,
        stream_options=fields("include_usage include_obfuscation"),
        stop=data,
        logit_bias=data,
        metadata=data,
        modalities=Each(scalar),
        audio=fields("format", voice=TextOr(fields("id"))),
        image_config=fields("aspect_ratio image_size"),
        prediction=fields("type", content=_CONTENT),
        prompt_cache_options=CACHE_OPTIONS,
        moderation=MODERATION,
        store=needs("stored", False),
    )
    | _BEYOND_OPENAI
)


def _tokens(value: object, review: Review) -> None:
    """Text, tokens, or lists of these."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list):
                Each(scalar)(item, review)
            else:
                scalar(item, review)
    else:
        scalar(value, review)


COMPLETION = (
    fields(
        _SAMPLING + "best_of suffix",
        prompt=_tokens,
        stop=data,
        logit_bias=data,
        response_format=RESPONSE_FORMAT,
        stream_options=fields("include_usage include_obfuscation"),
    )
    | _BEYOND_OPENAI
)
EMBEDDING = fields(
    """model user dimensions encoding_format input_type truncate truncation output_dtype task late_chunking normalized
    priority truncate_prompt_tokens keep_alive""",
    input=_tokens,
    provider=PROVIDER_CHOICE,
)
