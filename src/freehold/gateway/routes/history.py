"""History: list, compare, undo, redo, restore and revert. The keeper answers every request."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.conversation_words import entries_without_words, may_read_words
from freehold.gateway.history_notes import make_author
from freehold.gateway.inputs import (
    DIGITS,
    MAX_PATH_TEXT,
    PathText,
    Positive,
    RequestBody,
    RestoreId,
    UrlId,
    UrlPositive,
)
from freehold.gateway.moments import Moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.history import calls
from freehold.history.model import CancelOutcome, RestorePhase
from freehold.history.restore_control import describe_phase
from freehold.observe.tracing import span
from freehold.strict_json import encode
from freehold.typed_call import TypedCall

Reply = TypeVar("Reply")


class HistoryEntryBody(BaseModel):
    """One recorded state of the files: who, when, why, and how much changed."""

    id: int
    at: Moment
    kind: str
    who: dict[str, str] = Field(
        description="`by` is the kind of author; `via`, `sign_in`, `token` and `session` tell how an undo or restore was requested."
    )
    why: str
    added: int
    changed: int
    removed: int
    lines_added: int | None
    lines_removed: int | None
    good: bool
    equals: int = Field(description="The entry whose state this one has; its own id unless it is an undo or redo.")
    notes: list[str]


class HistoryPageBody(BaseModel):
    """Entries, newest first."""

    entries: list[HistoryEntryBody]


class HistoryChangesBody(BaseModel):
    """The changes of one entry, path by path."""

    entry: HistoryEntryBody
    changes: list[dict[str, str]]
    total: int


class HistoryDiffBody(BaseModel):
    """The changes of one entry, line by line."""

    entry: HistoryEntryBody
    files: list[dict[str, Any]]
    total: int


class ComparedFileBody(BaseModel):
    """The difference in one path. `text` is a unified diff; it is empty when `note` says why there is none."""

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


class HistoryComparisonBody(BaseModel):
    """The difference between two states. `old` is null before the first entry. `total` counts files that were left out too."""

    old: HistoryEntryBody | None
    new: HistoryEntryBody
    files: list[ComparedFileBody]
    total: int


class HistoryPlanBody(BaseModel):
    """What would happen to every path. Nothing is changed."""

    kind: str
    target: int
    steps: list[dict[str, str]] = Field(
        description="The fate of each path: `fate` is its code, `word` the fate in words, `detail` more about it."
    )
    total: int
    counts: dict[str, int] = Field(description="How many paths would be restored, removed, adjusted or left alone.")
    summary: str = Field(description="The counts in words.")
    conflicts: list[dict[str, str]]
    shared: bool = Field(
        default=False,
        description="Others changed files during the reverted turn, so some of the changes may be theirs.",
    )


class HistoryOutcomeBody(BaseModel):
    """What was done: its own entry, the fate of each path, and each path that does not have the planned state."""

    entry: HistoryEntryBody
    done: int = Field(description="How many paths were changed.")
    fates: list[dict[str, str]] = Field(
        description="The same list as `steps` of the plan, with `failed` where it failed."
    )
    total: int
    counts: dict[str, int] = Field(description="How many paths were restored, removed, adjusted, left alone or failed.")
    summary: str = Field(description="The counts in words.")
    unsettled: list[dict[str, str]]
    total_unsettled: int


class RestoreProgressBody(BaseModel):
    """How far an undo, redo, restore, revert or rewind is."""

    id: str = Field(description="`restore_id` of the request that asked for it.")
    kind: Literal["undo", "redo", "restore", "revert", "merge"]
    phase: RestorePhase = Field(
        description="`waiting` for other work on the files, `planning`, `preparing`, `changing` the files, `recording` the result."
    )
    done: int = Field(description="Steps of this phase that are done, about.")
    total: int = Field(description="Steps of this phase; 0 when they are not counted.")
    cancellable: bool = Field(description="No file has changed yet.")
    words: str = Field(description="The phase and its steps in words.")


class RestoreCancellationBody(BaseModel):
    outcome: CancelOutcome = Field(
        description="`cancelled`: no file changes. `too-late`: files are being changed, and it is finished. `not-found`: it has ended, or has not arrived yet."
    )


class ShownFileBody(BaseModel):
    """A file as it was. A large file is cut, and `more` is true."""

    path: str
    what: str
    mode: int
    mtime: int
    size: int
    base64: str | None = None
    more: bool = False


class HistoryNoticeBody(BaseModel):
    """What history has to tell the owner: what it could not store, moved aside, or is about to drop."""

    code: str
    message: str
    hint: str
    at: Moment


class HistorySizeBody(BaseModel):
    """The disk space that history uses."""

    model_config = ConfigDict(extra="allow")


class RestoreRequestBody(RequestBody):
    """What every request to change files has."""

    restore_id: RestoreId | None = None


class UndoBody(RestoreRequestBody):
    entry: Positive | None = Field(default=None, description="Go back to before this entry. Default: the last entry.")


class RedoBody(RestoreRequestBody):
    """It needs no field."""


class RestoreBody(RestoreRequestBody):
    entry: Positive
    paths: list[PathText] = Field(
        default=[], max_length=1000, description="The paths to restore; all paths when empty."
    )


class SessionTurnBody(RequestBody):
    """A turn of a session. Its changes can be in more than one entry."""

    session: str = Field(max_length=64)
    turn: Positive


class RevertBody(RestoreRequestBody):
    entry: Positive
    since: Positive | None = Field(default=None, description="Revert all changes after this entry, up to `entry`.")
    of: SessionTurnBody | None = Field(
        default=None,
        description="The turn that is reverted. It is recorded with the new entry. With `since`, only changes of this turn are reverted.",
    )
    choose: dict[PathText, Literal["old", "mine"]] = Field(
        default={}, max_length=1000, description="For each path in conflict, the side to keep."
    )


class MarkGoodBody(RequestBody):
    good: bool = True


class PlanHistoryBody(RequestBody):
    """An action to preview."""

    action: Literal["undo", "redo", "restore", "revert"]
    entry: Positive | None = None
    paths: list[PathText] | None = Field(default=None, max_length=1000)
    choose: dict[PathText, Literal["old", "mine"]] | None = Field(default=None, max_length=1000)
    since: Positive | None = None
    of: SessionTurnBody | None = None


class HistoryRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    async def _ask(self, call: TypedCall[Reply]) -> Reply:
        return await self._services.keeper.call(call, timeout=calls.RESTORE_TIMEOUT)

    async def _ask_for(self, request: Request, call: TypedCall[Reply]) -> Any:
        """The reply as JSON, with as much of it as this request may read."""
        reply = encode(await self._ask(call))
        return reply if may_read_words(request) else entries_without_words(reply)

    async def _act(self, call: TypedCall[calls.RestoreReport]) -> HistoryOutcomeBody:
        with span(call.method.replace(".", " ")) as seen:
            report = await self._ask(call)
            seen.set("freehold.history.entry", report.entry.id)
            seen.set("freehold.history.paths_changed", report.done)
        return HistoryOutcomeBody.model_validate(encode(report))

    @get("/v1/history", scope="read")
    async def list_history(
        self,
        request: Request,
        path: Annotated[str | None, Query(max_length=MAX_PATH_TEXT)] = None,
        before: UrlPositive | None = None,
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 50,
    ) -> HistoryPageBody:
        """Entries, newest first. `path` selects entries that changed it; `before` selects older entries.

        Prompts and commands need the scope `prompt`; without it `why` is empty.
        """
        return HistoryPageBody.model_validate(await self._ask_for(request, calls.ListEntries(path, limit, before)))

    @get("/v1/history/size", scope="read")
    async def history_size(self) -> HistorySizeBody:
        """The disk space that history uses, and its limit."""
        return HistorySizeBody.model_validate(encode(await self._ask(calls.MeasureHistory())))

    @get("/v1/history/notices", scope="read")
    async def history_notices(self) -> list[HistoryNoticeBody]:
        """What history has to tell the owner, oldest first."""
        status = await self._ask(calls.GetHistoryStatus())
        return [HistoryNoticeBody.model_validate(encode(notice)) for notice in status.notices]

    @get("/v1/history/compare", scope="files")
    async def compare_history(
        self,
        request: Request,
        old: Annotated[str, Query(max_length=15, pattern="^([0-9]{1,15}|good|before)$")] = "before",
        new: Annotated[str, Query(max_length=15, pattern="^([0-9]{1,15}|now)$")] = "now",
        path: Annotated[str | None, Query(max_length=MAX_PATH_TEXT)] = None,
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 200,
        skip: Annotated[int, Query(ge=0, le=100_000_000), DIGITS] = 0,
    ) -> HistoryComparisonBody:
        """The difference between two states. For the next page, `skip` as many files as you have, with both as entries.

        `old` is an entry, `good` (the last known good) or `before` (the entry before `new`). `new` is an entry or `now`,
        which records a snapshot first.
        """
        now = calls.TakeSnapshot(why="found before a comparison")
        to = int(new) if new != "now" else (await self._ask(now)).entry
        start = int(old) if old not in ("good", "before") else None
        found = await self._ask_for(request, calls.CompareEntries(to, start, old == "good", path, limit, skip))
        return HistoryComparisonBody.model_validate(found)

    @get("/v1/history/restores", scope="read")
    async def list_restores(self) -> list[RestoreProgressBody]:
        """How far each undo, redo, restore, revert and rewind is that runs or waits, the oldest first."""
        found = await self._ask(calls.ListRestores())
        return [
            RestoreProgressBody.model_validate({**vars(each), "words": describe_phase(each)}) for each in found.restores
        ]

    @post("/v1/history/restores/{restore_id}/cancel", scope="history")
    async def cancel_restore(self, restore_id: UrlId) -> RestoreCancellationBody:
        """Cancel one restore, unless it changes files already. The request that asked for it then fails with `history.cancelled`."""
        return RestoreCancellationBody(outcome=(await self._ask(calls.CancelRestore(restore_id))).outcome)

    @get("/v1/history/{entry}", scope="read")
    async def history_changes(
        self, request: Request, entry: UrlPositive, limit: Annotated[int, Query(ge=1, le=5000), DIGITS] = 1000
    ) -> HistoryChangesBody:
        """The changes of one entry."""
        return HistoryChangesBody.model_validate(await self._ask_for(request, calls.ListEntryChanges(entry, limit)))

    @get("/v1/history/{entry}/diff", scope="files")
    async def history_diff(
        self,
        request: Request,
        entry: UrlPositive,
        path: Annotated[str | None, Query(max_length=MAX_PATH_TEXT)] = None,
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 200,
    ) -> HistoryDiffBody:
        """The changes of one entry, line by line."""
        return HistoryDiffBody.model_validate(await self._ask_for(request, calls.DiffEntry(entry, path, limit)))

    @get("/v1/history/{entry}/file", scope="files")
    async def history_file(
        self,
        entry: UrlPositive,
        path: Annotated[str, Query(max_length=MAX_PATH_TEXT)],
        offset: Annotated[int, Query(ge=0, le=1 << 50), DIGITS] = 0,
    ) -> ShownFileBody:
        """A file as it was in an entry, from the byte `offset` on."""
        return ShownFileBody.model_validate(encode(await self._ask(calls.ShowFile(entry, path, offset))))

    @post("/v1/history/plan", scope="read")
    async def plan_history(self, body: PlanHistoryBody) -> HistoryPlanBody:
        """What an action would do to every path."""
        return HistoryPlanBody.model_validate(encode(await self._ask(_make_plan_call(body))))

    @post("/v1/history/{entry}/good", scope="history")
    async def set_good(self, entry: UrlPositive, body: MarkGoodBody, request: Request) -> HistoryEntryBody:
        """Mark an entry as known good, or remove the mark. The newest marked entry is never deleted."""
        found = HistoryEntryBody.model_validate(encode((await self._ask(calls.SetEntryGood(entry, body.good))).entry))
        kind = "history.marked_good" if body.good else "history.unmarked_good"
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, kind, {"entry": entry}, who=who)
        return found

    @post("/v1/history/undo", scope="history")
    async def undo(self, body: UndoBody, request: Request) -> HistoryOutcomeBody:
        """Go back to before an entry. The undo is an entry itself and can be undone."""
        return await self._act(calls.UndoChanges(body.entry, who=make_author(request), restore_id=body.restore_id))

    @post("/v1/history/redo", scope="history")
    async def redo(self, body: RedoBody, request: Request) -> HistoryOutcomeBody:
        """Take back the last undo."""
        return await self._act(calls.RedoChanges(who=make_author(request), restore_id=body.restore_id))

    @post("/v1/history/restore", scope="history")
    async def restore(self, body: RestoreBody, request: Request) -> HistoryOutcomeBody:
        """Restore paths, or everything, to their state in an entry."""
        who = make_author(request)
        return await self._act(calls.RestoreEntry(body.entry, tuple(body.paths), who=who, restore_id=body.restore_id))

    @post("/v1/history/revert", scope="history")
    async def revert(self, body: RevertBody, request: Request) -> HistoryOutcomeBody:
        """Take back the changes of one entry, or of all entries after `since` up to it, and keep later changes."""
        who, turn = make_author(request), _make_turn(body.of)
        if turn is not None:
            who = replace(who, session=turn.session, turn=str(turn.turn))
        choose = dict(body.choose)
        return await self._act(
            calls.RevertEntry(body.entry, choose, body.since, turn, who=who, restore_id=body.restore_id)
        )


def _make_turn(body: SessionTurnBody | None) -> calls.TurnReference | None:
    return None if body is None else calls.TurnReference(body.session, body.turn)


def _make_plan_call(body: PlanHistoryBody) -> TypedCall[calls.RestorePreview]:
    if body.action == "undo":
        return calls.PlanUndo(body.entry)
    if body.action == "redo":
        return calls.PlanRedo()
    if body.entry is None:
        raise FreeholdError("history.bad-request", f"A plan for {body.action} needs an entry")
    if body.action == "restore":
        return calls.PlanRestore(body.entry, tuple(body.paths or ()))
    return calls.PlanRevert(body.entry, dict(body.choose or {}), body.since, _make_turn(body.of))
