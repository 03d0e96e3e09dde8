"""The OpenAPI document, and its TypeScript types."""

import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _description() -> dict[str, Any]:
    from freehold.gateway.application import build_routes
    from freehold.gateway.context import make_context
    from freehold.gateway.routes.description import describe_api
    from freehold.gateway.services import open_services
    from freehold.gateway.topic_publisher import TopicPublisher
    from freehold.home import Home
    from freehold.manifest import load_manifest

    with tempfile.TemporaryDirectory() as folder:
        home = Home(root=Path(folder), run=Path(folder) / "run")
        with open_services(home, load_manifest(home.manifest, {}, home=home.root)) as services:
            return describe_api(build_routes(make_context(services, TopicPublisher(services))))


def openapi() -> str:
    return json.dumps(_description(), indent=2, sort_keys=True) + "\n"


def typescript_types() -> str:
    """TypeScript for every shape of the API, for the TypeScript client and with it the control center."""
    schemas = _description()["components"]["schemas"]
    parts = [
        "/** Made from the API by `python -m tools.generate`: change the routes in src/freehold/gateway/routes/. */"
    ]
    parts += ["\n".join(_declaration(name, schemas[name])) for name in sorted(schemas)]
    return "\n\n".join(parts) + "\n"


def _declaration(name: str, schema: dict[str, Any]) -> Iterator[str]:
    if text := schema.get("description"):
        yield _comment(text, "")
    if schema.get("type") != "object" or "properties" not in schema:
        yield f"export type {_identifier(name)} = {_type(schema)};"
        return
    yield f"export interface {_identifier(name)} {{"
    required = set(schema.get("required", ()))
    for field, inner in schema["properties"].items():
        if text := inner.get("description"):
            yield _comment(text, "  ")
        yield f"  {_key(field)}{'' if field in required else '?'}: {_type(inner)};"
    yield "}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _identifier(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(one) for one in schema[several]))
    match schema.get("type"):
        case "array":
            if "prefixItems" in schema:
                return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object":
            return _object(schema)
        case "integer" | "number":
            return "number"
        case "string":
            return "string"
        case "boolean":
            return "boolean"
        case "null":
            return "null"
    return "unknown"


def _object(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        required = set(schema.get("required", ()))
        fields = (
            f"{_key(name)}{'' if name in required else '?'}: {_type(inner)}"
            for name, inner in schema["properties"].items()
        )
        return f"{{ {'; '.join(fields)} }}"
    more = schema.get("additionalProperties")
    return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"


def _comment(text: str, indent: str) -> str:
    lines = text.replace("*/", "").strip().splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */"
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"])


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)
