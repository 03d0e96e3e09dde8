"""Writes a server that the owner adds in the control center into the manifest."""

from pathlib import Path

from freehold.errors import FreeholdError
from freehold.manifest.edit import Plain, edit_manifest
from freehold.mcp.bodies import AddMcpServerBody
from freehold.mcp.checks import find_mistakes
from freehold.mcp.section import McpServerSection


def add_server(manifest: Path, wanted: AddMcpServerBody) -> McpServerSection:
    """Blocking. Raises `mcp.bad-value` for what the checks of the manifest would refuse; then nothing is written."""
    values: dict[str, Plain] = {}
    if wanted.command:
        values["command"] = wanted.command
    if wanted.url:
        values["url"] = wanted.url
    if wanted.key:
        values["key"] = f"secret:{wanted.key}"
    if wanted.oauth:
        values["oauth"] = True
    section = McpServerSection.model_validate(values)
    for mistake in find_mistakes(wanted.name, section):
        raise FreeholdError("mcp.bad-value", mistake.message, hint=mistake.hint)
    edit_manifest(manifest, f"mcp.{wanted.name}", values)
    return section
