"""The description of the API as OpenAPI."""

import re
from typing import Any

from fastapi import FastAPI, Request

from freehold.gateway.context import RouteContext
from freehold.gateway.route_scope import RouteScope
from freehold.gateway.routing import build_all, get, read_route_table

SUFFIX = "Body"
_CONVERTER = re.compile(r":[a-z]+}")
"""`{path:path}` of a route is `{path}` in OpenAPI."""

ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "additionalProperties": False,
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "error_id": {"type": "string"},
            },
        }
    },
}
ERROR_RESPONSE = {
    "description": "The error",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def describe_api(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with the scope of each operation and the one shape of all errors.

    Python names every model of the API with the suffix `Body`; the description leaves the suffix out.
    """
    build_all(app)
    description: dict[str, Any] = _without_suffix(app.openapi())
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = ERROR_SCHEMA
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    description["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "browser": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Sign-In KEY`: only the pages of the control center have such a key.",
        },
    }
    scopes = {
        (method, _CONVERTER.sub("}", route.path)): route.scope
        for route in read_route_table(app.routes).routes
        for method in route.methods
    }
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            _describe_operation(operation, scopes[method.upper(), path])
    return description


def _describe_operation(operation: dict[str, Any], scope: RouteScope) -> None:
    operation["x-freehold-scope"] = scope
    if scope == "anyone":
        operation["security"] = []
    else:
        operation["security"] = [{"browser": []}] if scope == "browser" else [{"browser": []}, {"token": []}]
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = ERROR_RESPONSE


def _without_suffix(part: Any) -> Any:
    """The same description, with every schema `XBody` called `X`, wherever it is named."""
    if isinstance(part, list):
        return [_without_suffix(one) for one in part]
    if not isinstance(part, dict):
        return part
    renamed = {name: _without_suffix(value) for name, value in part.items()}
    if isinstance(reference := renamed.get("$ref"), str):
        renamed["$ref"] = reference.removesuffix(SUFFIX)
    if "properties" in renamed and isinstance(title := renamed.get("title"), str):
        renamed["title"] = title.removesuffix(SUFFIX)
    if isinstance(schemas := renamed.get("schemas"), dict):
        renamed["schemas"] = {name.removesuffix(SUFFIX): schema for name, schema in schemas.items()}
    return renamed


class DescriptionRoutes:
    def __init__(self, _context: RouteContext) -> None:
        """Describes the application that it is added to; needs nothing else."""

    @get("/v1/openapi.json", scope="read", include_in_schema=False)
    async def openapi(self, request: Request) -> dict[str, Any]:
        return describe_api(request.app)
