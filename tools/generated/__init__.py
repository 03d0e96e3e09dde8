"""All generated files, each with the function that makes its text.

A function imports what it needs when it is called. For the same sources it always returns the same text.
"""

from collections.abc import Callable, Mapping

from tools.generated.architecture import architecture_page
from tools.generated.cli import cli_reference, man_page
from tools.generated.client import sync_client
from tools.generated.context_windows import context_windows
from tools.generated.errors import error_page
from tools.generated.manifest import manifest_reference
from tools.generated.openapi import openapi, typescript_types
from tools.generated.prices import price_table
from tools.generated.sbom import software_bill_of_materials
from tools.generated.schema import manifest_schema

GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/architecture.md": architecture_page,
    "docs/freehold.schema.json": manifest_schema,
    "docs/manifest.md": manifest_reference,
    "docs/cli.md": cli_reference,
    "docs/freehold.1": man_page,
    "docs/errors.md": error_page,
    "src/freehold/egress/models/prices.json": price_table,
    "src/freehold/builtin/context_windows.json": context_windows,
    "docs/openapi.json": openapi,
    "docs/sbom.cdx.json": software_bill_of_materials,
    "clients/typescript/src/api.ts": typescript_types,
    **sync_client(),
}
