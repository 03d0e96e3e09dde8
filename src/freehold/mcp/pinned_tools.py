"""The tools that the owner has allowed, each pinned to what was shown of it."""

import json
from dataclasses import dataclass

from freehold.mcp.described_tool import DescribedTool
from freehold.timeline import Json, Timeline

SCHEMA = """
CREATE TABLE mcp_tool (
    server TEXT NOT NULL, tool TEXT NOT NULL, description TEXT NOT NULL, schema TEXT NOT NULL, allowed TEXT,
    PRIMARY KEY (server, tool)
) WITHOUT ROWID;
CREATE TABLE mcp_off (server TEXT PRIMARY KEY) WITHOUT ROWID;
"""


MAX_KNOWN = 1_000
"""Tools of one server that are remembered. With more of them none is allowed by the manifest any more."""
_GONE = "null"
"""In the place of the schema of a tool that its server no longer describes."""


@dataclass(frozen=True)
class PinnedTool:
    """`offered`: as the server described it last. `is_allowed`: the owner has allowed exactly this."""

    server: str
    offered: DescribedTool
    allowed_digest: str | None

    @property
    def is_allowed(self) -> bool:
        return self.allowed_digest == self.offered.digest

    @property
    def has_changed(self) -> bool:
        """Since it was allowed."""
        return self.allowed_digest is not None and not self.is_allowed


class PinnedTools:
    """Blocking."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._is_prepared = False

    def list(self, server: str) -> dict[str, PinnedTool]:
        """Those that the server describes."""
        return {name: one for name, one in self._read(server).items() if one is not None}

    def note(self, server: str, offered: dict[str, DescribedTool], allow: frozenset[str]) -> None:
        """Keep what a server describes now. Those named by `allow` are allowed when they are seen for the first time.

        One that comes back after it was gone is not new: what the owner has allowed or denied still holds.
        """
        known, decided = self._read(server), self._read_decisions(server)
        may_allow = len(known) < MAX_KNOWN

        def is_named(name: str) -> bool:
            return may_allow and ("*" in allow or name in allow)

        with self._timeline.transaction() as tx:
            for name, tool in offered.items():
                before = known.get(name)
                if before is not None and before.offered == tool:
                    continue
                allowed = decided.get(name)
                data: dict[str, Json] = {"server": server, "tool": name, "digest": tool.digest}
                if name not in known and is_named(name):
                    allowed = tool.digest
                    tx.append("mcp.tool_allowed", data)
                if allowed not in (None, tool.digest) and (before is None or before.is_allowed):
                    tx.append("mcp.tool_changed", data)
                values = (server, name, tool.description, json.dumps(tool.schema), allowed)
                tx.execute("INSERT OR REPLACE INTO mcp_tool VALUES (?, ?, ?, ?, ?)", values)
            for name in [name for name, one in known.items() if one is not None and name not in offered]:
                if decided[name] is not None or is_named(name):
                    tx.execute(
                        "UPDATE mcp_tool SET description = '', schema = ? WHERE server = ? AND tool = ?",
                        (_GONE, server, name),
                    )
                else:
                    tx.execute("DELETE FROM mcp_tool WHERE server = ? AND tool = ?", (server, name))

    def _read(self, server: str) -> dict[str, PinnedTool | None]:
        """None for one that is gone."""
        self._prepare()
        rows = self._timeline.query(
            "SELECT tool, description, schema, allowed FROM mcp_tool WHERE server = ? ORDER BY tool", (server,)
        )
        return {
            tool: None
            if schema == _GONE
            else PinnedTool(server, DescribedTool(tool, description, json.loads(schema)), allowed)
            for tool, description, schema, allowed in rows
        }

    def _read_decisions(self, server: str) -> dict[str, str | None]:
        """What is allowed of each tool, also of those that are gone."""
        return dict(self._timeline.query("SELECT tool, allowed FROM mcp_tool WHERE server = ?", (server,)))

    def decide(self, server: str, tool: str, digest: str | None, *, who: str) -> bool:
        """Allow a tool as it was shown, or no longer. False when it is not what the server describes now."""
        rows = self._read(server)
        known = rows.get(tool)
        shown = None if known is None else known.offered.digest
        if tool not in rows or digest not in (None, shown):
            return False
        kind = "mcp.tool_denied" if digest is None else "mcp.tool_allowed"
        with self._timeline.transaction() as tx:
            tx.append(kind, {"server": server, "tool": tool, "digest": shown}, who=who)
            tx.execute("UPDATE mcp_tool SET allowed = ? WHERE server = ? AND tool = ?", (digest, server, tool))
        return True

    def is_off(self, server: str) -> bool:
        self._prepare()
        return bool(self._timeline.query("SELECT 1 FROM mcp_off WHERE server = ?", (server,)))

    def switch(self, server: str, *, on: bool, who: str) -> None:
        """Offer the tools of a server to agents, or not. Idempotent."""
        self._prepare()
        sql = "DELETE FROM mcp_off WHERE server = ?" if on else "INSERT OR IGNORE INTO mcp_off VALUES (?)"
        with self._timeline.transaction() as tx:
            tx.append("mcp.server_switched", {"server": server, "on": on}, who=who)
            tx.execute(sql, (server,))

    def _prepare(self) -> None:
        if not self._is_prepared:
            self._timeline.ensure_schema("mcp", SCHEMA)
            self._is_prepared = True
