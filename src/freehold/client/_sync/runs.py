# made from _async/runs.py by python -m tools.generate
"""Agents that work in parallel: `home.runs`."""

from collections.abc import Iterator, Sequence
from typing import Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.run_models import RunChangeListing, RunEventInfo, RunEventListing, RunInfo, RunListPage
from freehold.client.topic_protocol import quote_segment

RUNS = "/v1/slots/orchestrator/runs"


class SyncRuns:
    """The token needs the scope `orchestrator`, `prompt` to begin a run, and `history` to begin it from an older state.

    It ends runs that it began, and takes their changes; with the scope `admin` also those of others.
    """

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def spawn(
        self,
        prompt: str,
        *,
        agent: str | None = None,
        model: str | None = None,
        title: str | None = None,
        folder: str | None = None,
        entry: int | None = None,
        budget: float | None = None,
        permissions: Sequence[str] | None = None,
        key: str | None = None,
    ) -> RunInfo:
        """Let an agent work on a prompt, in a throw-away computer with a copy of a folder of the workspace.

        The folder is copied as it was right after an `entry` of history, or as it is now. `permissions`: some of ask,
        network, pods, memory, beads, events, history, runs. None: all of them.
        """
        given = {"prompt": prompt, "agent": agent, "model": model, "title": title, "folder": folder, "entry": entry}
        may = None if permissions is None else list(permissions)
        more = {"budget": budget, "permissions": may, "key": key}
        body = {name: value for name, value in {**given, **more}.items() if value is not None}
        return self._connection.post(RUNS, RunInfo, body)

    def list(
        self, *, parent: str | None = None, active: bool = False, limit: int = 50, cursor: str | None = None
    ) -> RunListPage:
        query = {"parent": parent, "active": "true" if active else None, "limit": limit, "cursor": cursor}
        return self._connection.get(RUNS, RunListPage, query)

    def get(self, run: str) -> RunInfo:
        return self._connection.get(_path(run), RunInfo)

    def stream(self, run: str, after: int = 0) -> Iterator[RunEventInfo]:
        """What its agent says and does, until the run has finished."""
        while True:
            query = {"after": after, "wait": 5}
            found = self._connection.get(f"{_path(run)}/events", RunEventListing, query)
            yield from found.events
            after = found.cursor
            if found.run.is_finished and not found.events:
                return

    def stop(self, run: str) -> RunInfo:
        return self._connection.post(f"{_path(run)}/stop", RunInfo, {})

    def changes(self, run: str) -> RunChangeListing:
        """What it has changed in its copy, beside the files as they are now."""
        return self._connection.get(f"{_path(run)}/changes", RunChangeListing)

    def take_changes(
        self, run: str, how: Literal["merge", "drop"], *, force: bool = False, key: str | None = None
    ) -> RunInfo:
        """Merge its changes into the workspace, or drop them. Raises `orchestrator.conflict` when others changed a file."""
        body = {"how": how, "force": force, "key": key}
        return self._connection.post(f"{_path(run)}/changes", RunInfo, body)


def _path(run: str) -> str:
    return f"{RUNS}/{quote_segment(run)}"
