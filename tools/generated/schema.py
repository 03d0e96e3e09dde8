"""The JSON Schema of `freehold.toml`, for editors."""

import json


def manifest_schema() -> str:
    from freehold.manifest.model import Manifest

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Manifest.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
