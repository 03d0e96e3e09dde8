"""Checks of `[mcp]`."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.mcp.section import McpSection, McpServerSection
from freehold.mcp.token_address import may_carry_token

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


@check("E921")
def unusable_mcp_server(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An MCP server has no place or two, an address that is not safe, or a key that is not the name of a secret."""
    for name, server in manifest.section(McpSection).servers.items():
        yield from find_mistakes(name, server)


@check("E922")
def odd_mcp_name(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The name of an MCP server cannot be a part of a tool's name."""
    for name in manifest.section(McpSection).servers:
        if not _NAME.fullmatch(name):
            yield CheckFinding(
                ("mcp", name),
                f"{show_value(name)} is not a name for an MCP server",
                "Small letters, digits and hyphens",
            )


def find_mistakes(name: str, server: McpServerSection) -> Iterator[CheckFinding]:
    place: KeyPath = ("mcp", name)
    if bool(server.command) == (server.url is not None):
        found = "both a command and a url" if server.url else "no command and no url"
        example = 'Example: command = "notes-mcp", or url = "https://mcp.example.org/mcp"'
        yield CheckFinding(place, f"[{show_key(place)}] has {found}", example)
    if server.url is not None:
        address: KeyPath = (*place, "url")
        parts = urlsplit(server.url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.fragment:
            yield CheckFinding(
                address, f"{show_key(address)} is {show_value(server.url)}", "https://mcp.example.org/mcp"
            )
        elif server.key is not None and parts.scheme != "https":
            yield CheckFinding(address, f"{show_key(address)} would send a secret without TLS", "Use https")
        elif server.oauth and not may_carry_token(server.url):
            hint = "Use https; http is for localhost and for private IP addresses"
            yield CheckFinding(address, f"{show_key(address)} would send your token without TLS", hint)
    if server.oauth and (server.url is None or server.key is not None):
        signed: KeyPath = (*place, "oauth")
        yield CheckFinding(
            signed, f"{show_key(signed)} is for a server with a url and without a key", "Remove one of them"
        )
    if server.key is not None:
        key: KeyPath = (*place, "key")
        if not server.key.startswith("secret:"):
            words = f"{show_key(key)} is not the name of a secret"
            yield CheckFinding(key, words, "secret:name; freehold secret set name")
        elif server.url is None:
            yield CheckFinding(key, f"{show_key(key)} has no use: a program inside is given no secret", "Remove it")
