"""Every generated file, with the function that makes its text. One line adds another.

A function imports what it needs when it is called, and returns the same text every time for the same sources.
"""

from collections.abc import Callable, Mapping

from tools.generated.cli import cli_reference
from tools.generated.client import sync_client
from tools.generated.manifest import manifest_reference
from tools.generated.openapi import openapi, web_types
from tools.generated.prices import price_table
from tools.generated.schema import manifest_schema

GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/freehold.schema.json": manifest_schema,
    "docs/manifest.md": manifest_reference,
    "docs/cli.md": cli_reference,
    "src/freehold/egress/models/prices.json": price_table,
    "docs/openapi.json": openapi,
    "web/src/client/api.ts": web_types,
    **sync_client(),
}
