"""What changed and the way back, for browsers and clients: every question is the keeper's to answer."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs

# A restore of many files takes its time; the keeper answers other calls meanwhile.
PATIENCE = 600.0


class HistoryEntry(BaseModel):
    """One state of the files: who made it, why, when, and how much it changed."""

    id: int
    at: float
    kind: str
    who: dict[str, str]
    why: str
    added: int
    changed: int
    removed: int
    lines_added: int | None
    lines_removed: int | None
    good: bool
    equals: int = Field(description="The entry whose state this one has; its own id unless it is an undo or redo.")
    notes: list[str]


class HistoryPage(BaseModel):
    """Entries, the newest first."""

    entries: list[HistoryEntry]


class HistoryChanges(BaseModel):
    """What one entry changed, path by path."""

    entry: HistoryEntry
    changes: list[dict[str, str]]
    total: int


class HistoryDiff(BaseModel):
    """What one entry changed, line by line."""

    entry: HistoryEntry
    files: list[dict[str, Any]]
    total: int


class ComparedFile(BaseModel):
    """What differs in one path; `text` is a unified diff, empty when `note` says why there is none."""

    path: str
    word: Literal["added", "changed", "removed"]
    old_mode: int | None
    new_mode: int | None
    old_size: int | None
    new_size: int | None
    binary: bool
    added: int | None
    removed: int | None
    text: str
    note: str


class HistoryComparison(BaseModel):
    """What differs between two states. `old` is null for the state before all entries; `total` counts what was left out, too."""

    old: HistoryEntry | None
    new: HistoryEntry
    files: list[ComparedFile]
    total: int


class HistoryPlan(BaseModel):
    """What would happen to every path; nothing has happened yet."""

    kind: str
    target: int
    steps: list[dict[str, str]]
    total: int
    conflicts: list[dict[str, str]]
    shared: bool = Field(
        default=False, description="Others worked at the same time as the turn taken back: some of it may be theirs."
    )


class HistoryOutcome(BaseModel):
    """What was done, as an entry of its own, and what could not be settled."""

    entry: HistoryEntry
    done: int
    unsettled: list[dict[str, str]]


class ShownFile(BaseModel):
    """A file as it was; of a large one the beginning, and `more` is true."""

    path: str
    what: str
    mode: int
    mtime: int
    size: int
    base64: str | None = None
    more: bool = False


class HistorySize(BaseModel):
    """How much room history takes."""

    model_config = ConfigDict(extra="allow")


class Undo(BaseModel):
    model_config = ConfigDict(extra="forbid")
    entry: int | None = Field(
        default=None, ge=1, description="Go back to before this entry; the last one when not said."
    )


class Redo(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Restore(BaseModel):
    model_config = ConfigDict(extra="forbid")
    entry: int = Field(ge=1)
    paths: list[str] = Field(default=[], max_length=1000, description="Only these; everything when empty.")


class WholeTurn(BaseModel):
    """A turn of a session, whose work can be more than one entry."""

    model_config = ConfigDict(extra="forbid")
    session: str = Field(max_length=64)
    turn: int = Field(ge=1)


class Revert(BaseModel):
    model_config = ConfigDict(extra="forbid")
    entry: int = Field(ge=1)
    since: int | None = Field(default=None, ge=1, description="All that changed after this entry, up to the other.")
    of: WholeTurn | None = Field(
        default=None,
        description="The turn that this takes back, kept with the new entry; with `since`, only what was done for it.",
    )
    choose: dict[str, Literal["old", "mine"]] = Field(
        default={}, description="For each path in conflict, which side stays."
    )


class SetGood(BaseModel):
    model_config = ConfigDict(extra="forbid")
    good: bool = True


class PlanHistory(BaseModel):
    """An action to look at before it is done."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["undo", "redo", "restore", "revert"]
    entry: int | None = Field(default=None, ge=1)
    paths: list[str] | None = Field(default=None, max_length=1000)
    choose: dict[str, Literal["old", "mine"]] | None = None
    since: int | None = Field(default=None, ge=1)
    of: WholeTurn | None = None


def add_history(app: FastAPI, house: House) -> None:
    async def ask(method: str, **params: object) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return await house.keeper.call(f"history.{method}", given, timeout=PATIENCE)

    async def act(method: str, body: BaseModel, request: Request) -> HistoryOutcome:
        who = {
            "by": "owner",
            "agent": None if principal_of(request.scope).token is None else principal_of(request.scope).who,
        }
        named = {key: value for key, value in who.items() if value is not None}
        of = body.of if isinstance(body, Revert) else None
        if of is not None:
            named |= {"session": of.session, "turn": str(of.turn)}
        return HistoryOutcome.model_validate(await ask(method, **body.model_dump(), who=named))

    @app.get("/v1/history")
    @needs("read")
    async def list_history(
        path: Annotated[str | None, Query(max_length=4096)] = None,
        before: Annotated[int | None, Query(ge=1)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> HistoryPage:
        """Entries, the newest first; those that touched `path` when it is given; older than `before`."""
        return HistoryPage.model_validate(await ask("log", path=path, before=before, limit=limit))

    @app.get("/v1/history/size")
    @needs("read")
    async def history_size() -> HistorySize:
        """How much room history takes, and how much it may."""
        return HistorySize.model_validate(await ask("size"))

    @app.get("/v1/history/compare")
    @needs("read")
    async def compare_history(
        old: Annotated[str, Query(pattern="^([0-9]{1,15}|good|before)$")] = "before",
        new: Annotated[str, Query(pattern="^([0-9]{1,15}|now)$")] = "now",
        path: Annotated[str | None, Query(max_length=4096)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> HistoryComparison:
        """What differs between two states. `old` is an entry, `good` (the last known good) or `before` (the one before `new`);
        `new` is an entry or `now`, which takes what was not yet taken."""
        to = int(new) if new != "now" else (await ask("snapshot", why="found before a comparison"))["entry"]
        start = {"good": True} if old == "good" else {"old": int(old)} if old != "before" else {}
        return HistoryComparison.model_validate(await ask("compare", new=to, path=path, limit=limit, **start))

    @app.get("/v1/history/{entry}")
    @needs("read")
    async def history_changes(entry: int, limit: Annotated[int, Query(ge=1, le=5000)] = 1000) -> HistoryChanges:
        """What one entry changed."""
        return HistoryChanges.model_validate(await ask("changes", entry=entry, limit=limit))

    @app.get("/v1/history/{entry}/diff")
    @needs("read")
    async def history_diff(
        entry: int,
        path: Annotated[str | None, Query(max_length=4096)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> HistoryDiff:
        """What one entry changed, line by line."""
        return HistoryDiff.model_validate(await ask("diff", entry=entry, path=path, limit=limit))

    @app.get("/v1/history/{entry}/file")
    @needs("files")
    async def history_file(entry: int, path: Annotated[str, Query(max_length=4096)]) -> ShownFile:
        """A file as it was in an entry."""
        return ShownFile.model_validate(await ask("show", entry=entry, path=path))

    @app.post("/v1/history/plan")
    @needs("read")
    async def plan_history(body: PlanHistory) -> HistoryPlan:
        """What an action would do to every path."""
        asked = body.model_dump(exclude={"action"} if body.action == "revert" else {"action", "of"})
        return HistoryPlan.model_validate(await ask(body.action, **asked, dry_run=True))

    @app.post("/v1/history/{entry}/good")
    @needs("history")
    async def set_good(entry: int, body: SetGood, request: Request) -> HistoryEntry:
        """Mark an entry as known good, or take the mark away. The newest one marked is never dropped."""
        found = HistoryEntry.model_validate((await ask("good", entry=entry, good=body.good))["entry"])
        kind = "history.marked_good" if body.good else "history.unmarked_good"
        who = principal_of(request.scope).who
        await asyncio.to_thread(house.timeline.append, kind, {"entry": entry}, who=who)
        return found

    @app.post("/v1/history/undo")
    @needs("history")
    async def undo(body: Undo, request: Request) -> HistoryOutcome:
        """Go back to before an entry. Undoing is an entry itself and can be undone."""
        return await act("undo", body, request)

    @app.post("/v1/history/redo")
    @needs("history")
    async def redo(body: Redo, request: Request) -> HistoryOutcome:
        """Take back the last undo."""
        return await act("redo", body, request)

    @app.post("/v1/history/restore")
    @needs("history")
    async def restore(body: Restore, request: Request) -> HistoryOutcome:
        """Bring back paths, or everything, as they were in an entry."""
        return await act("restore", body, request)

    @app.post("/v1/history/revert")
    @needs("history")
    async def revert(body: Revert, request: Request) -> HistoryOutcome:
        """Take back only what one entry changed, or those after `since` up to it, and keep what came after."""
        return await act("revert", body, request)
