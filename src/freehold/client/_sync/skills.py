# made from _async/skills.py by python -m tools.generate
"""Skills: `home.skills`."""

from collections.abc import Sequence
from typing import Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.skill_models import (
    LookedSource,
    SkillInfo,
    SkillListing,
    SkillNames,
    SkillText,
    SkillWithContent,
)
from freehold.client.topic_protocol import quote_segment

LOOK_TIMEOUT = 400.0
"""Seconds: a repository may be large."""


class SyncSkills:
    """What is added was looked at first: `look`, then `add` by the hashes that it has shown."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> SkillListing:
        """The skills that the owner has added, and how often each was loaded."""
        return self._connection.get("/v1/skills", SkillListing)

    def get(self, name: str) -> SkillWithContent:
        """One skill with its instructions and files."""
        return self._connection.get(f"/v1/skills/{quote_segment(name)}", SkillWithContent)

    def read(self, name: str, path: str) -> SkillText:
        """One file of a skill."""
        return self._connection.get(f"/v1/skills/{quote_segment(name)}/file", SkillText, {"path": path})

    def look(
        self,
        source: Literal["shipped", "proposals", "remote", "package"],
        place: str = "",
        *,
        commit: str | None = None,
    ) -> LookedSource:
        """The skills of a source, with what was found in them. `remote`: the address of a git repository."""
        body = {"source": source, "place": place, "commit": commit}
        return self._connection.post("/v1/skills/look", LookedSource, body, timeout=LOOK_TIMEOUT)

    def look_for_update(self, name: str) -> LookedSource:
        """The version that its source has now; none when it is the one that is in use."""
        return self._connection.post(f"/v1/skills/{quote_segment(name)}/look", LookedSource, {}, timeout=LOOK_TIMEOUT)

    def add(self, digests: Sequence[str]) -> tuple[str, ...]:
        """Add or replace skills by the hashes of versions that were looked at. Returns their names."""
        return (self._connection.post("/v1/skills", SkillNames, {"digests": [*digests]})).names

    def switch(self, name: str, *, on: bool) -> SkillInfo:
        """Show a skill to agents, or not."""
        return self._connection.patch(f"/v1/skills/{quote_segment(name)}", SkillInfo, {"on": on})

    def remove(self, name: str) -> None:
        self._connection.delete(f"/v1/skills/{quote_segment(name)}", SkillNames)
