"""The API, described by itself."""

from typing import Any

from fastapi import FastAPI

from freehold.gateway.needs import needs, read_needs


def describe_api(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with each operation's need, and the one error shape for whatever can fail."""
    description = app.openapi()
    error = {
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
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = error
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    description["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "browser": {"type": "apiKey", "in": "cookie", "name": "__Host-freehold"},
    }
    needs_of = {
        (method, route.path): route.need for route in read_needs(app.routes).declared for method in route.methods
    }
    problem = {
        "description": "Refused, and why",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            need = needs_of[method.upper(), path]
            operation["x-freehold-need"] = need
            operation["security"] = (
                [] if need == "anyone" else [{"browser": []}] + ([] if need == "browser" else [{"token": []}])
            )
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = problem
    return description


def add_description(app: FastAPI) -> None:
    @app.get("/v1/openapi.json", include_in_schema=False)
    @needs("read")
    async def openapi() -> dict[str, Any]:
        return describe_api(app)
