"""Permission requests of agents, and the rules that answer some of them."""

import asyncio
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.owner_command import runs_command
from freehold.agents.sessions.permission_rules import MAX_PATTERN, MAX_RULES, PermissionRule
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlId
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post, put
from freehold.identity.tokens import Scope


class RequestPartBody(BaseModel):
    """One part of a permission request, with hidden characters made visible.

    A diff has `old` and `new`; every other part has `text`. `resolved` is where `path` really leads, when that is
    another place. `hidden_bytes` of this part are not shown. `runs_by_itself` says what runs the file or the command's
    word without anybody starting it. `warning` is a sentence for the owner.
    """

    kind: Literal[
        "command", "folder", "environment", "stdin", "diff", "path", "text", "input", "resource", "terminal", "meta"
    ]
    label: str
    text: str
    path: str | None
    resolved: str | None
    old: str | None
    new: str | None
    hidden_bytes: int
    runs_by_itself: str | None
    warning: str | None


class AgentAnswerBody(BaseModel):
    """An answer that the agent itself offers. `sent_for` says for which answer of the owner it is sent to the agent."""

    name: str
    kind: str
    sent_for: Literal["allow", "reject"] | None


MAX_LISTED = 200


class ApprovalInfoBody(BaseModel):
    """A permission request. `parts` has everything that the call carries; `digest` identifies all of it.

    `complete` is false when `hidden_bytes` of it are not shown. `names_nothing`: it names neither a command nor a
    path. `runs_by_itself`: it touches a file that something runs by itself. `asked_again`: the call changed while the
    former question waited, and that answer did not count. `details` has the command and its folder, for programs.
    When `details.kind` is "question" the agent asks for text: `details.input` is the question, `details.options` are
    the choices, and `details.free_text` says whether other text is accepted. With neither, the answer is yes or no.
    `note` is the owner's text. `options` are the answers that this request accepts. `lasting_effect` says what
    `conversation` and `always` allow, which is more than this call; null when there is no such answer, and for a host
    tool.
    """

    id: str
    session: str
    turn: int | None
    at: str
    state: Literal["pending", "answered", "withdrawn", "granted"]
    answer: Literal["once", "conversation", "always", "reject"] | None
    note: str | None
    options: list[Literal["once", "conversation", "always", "reject"]]
    tool: str | None
    kind: str
    title: str
    details: dict[str, Any]
    digest: str
    parts: list[RequestPartBody]
    complete: bool
    hidden_bytes: int
    names_nothing: bool
    runs_by_itself: bool
    asked_again: bool
    agent_options: list[AgentAnswerBody]
    lasting_effect: str | None


class PermissionRuleBody(BaseModel):
    """An `exact` rule matches one subject, any other a pattern with `*`. A rule with a session ends with it."""

    id: int
    effect: Literal["allow", "ask", "deny"]
    kind: str
    pattern: str
    exact: bool
    session: str | None


class ApprovalPolicyBody(BaseModel):
    """Deny wins over ask, and ask over allow. Without a matching rule the owner is asked."""

    rules: list[PermissionRuleBody]


class AnswerApprovalBody(RequestBody):
    answer: Literal["once", "conversation", "always", "reject"]
    note: str | None = Field(
        default=None,
        max_length=2000,
        description="For a question: the text or the choice (with the answer `once`). Otherwise: the next prompt.",
    )
    digest: str | None = Field(
        default=None,
        max_length=64,
        description="The digest of the call that was seen. The answer is refused if another call waits.",
    )


class WritePermissionRuleBody(RequestBody):
    effect: Literal["allow", "ask", "deny"]
    kind: str = Field(max_length=40)
    pattern: str = Field(min_length=1, max_length=MAX_PATTERN)
    exact: bool = False


class WriteApprovalPolicyBody(RequestBody):
    rules: list[WritePermissionRuleBody] = Field(max_length=MAX_RULES)


def _to_body(approval: ApprovalRow) -> ApprovalInfoBody:
    return ApprovalInfoBody.model_validate(approval.as_json())


class ApprovalRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._sessions = context.sessions
        self._approvals = context.sessions.dependencies.approvals

    def _policy(self) -> ApprovalPolicyBody:
        return ApprovalPolicyBody(
            rules=[PermissionRuleBody.model_validate(rule.as_json()) for rule in self._approvals.rules.all()]
        )

    @get("/v1/approvals", scope="prompt")
    async def list_approvals(self) -> list[ApprovalInfoBody]:
        """The permission requests that wait for an answer, oldest first; at most 200."""
        await self._sessions.ready.wait()
        return [_to_body(each) for each in (await asyncio.to_thread(self._approvals.store.list_pending))[:MAX_LISTED]]

    @get("/v1/approvals/policy", scope="admin")
    async def get_policy(self) -> ApprovalPolicyBody:
        """The permission rules."""
        await self._sessions.ready.wait()
        return await asyncio.to_thread(self._policy)

    @put("/v1/approvals/policy", scope="admin")
    async def set_policy(self, body: WriteApprovalPolicyBody, request: Request) -> ApprovalPolicyBody:
        """Replace all rules that do not belong to a session."""
        await self._sessions.ready.wait()
        rules = [PermissionRule(one.effect, one.kind, one.pattern, one.exact) for one in body.rules]
        await asyncio.to_thread(self._approvals.rules.replace, rules, who=principal_of(request.scope).who)
        return await asyncio.to_thread(self._policy)

    @post("/v1/approvals/{approval}", scope="prompt")
    async def answer_approval(self, approval: UrlId, body: AnswerApprovalBody, request: Request) -> ApprovalInfoBody:
        """Answer once: `once`, `conversation`, `always` or `reject`. A note is the next prompt, or the answer to a question.

        `always` needs the scope `admin`, and a note that is a shell command (`!…`) the scope `terminal`. A yes to a host
        tool needs the scope of what it does, which `details` names: `history` to undo changes, `admin` to open the network
        or a folder of personal documents, `files` to merge the changes of a run, `orchestrator history` (both) to begin
        runs from an older state.
        """
        principal = principal_of(request.scope)
        if body.answer == "always":
            principal.require("admin")
        if body.note is not None and runs_command(body.note):
            principal.require("terminal")
        if body.answer != "reject":
            await self._sessions.ready.wait()
            asked = await asyncio.to_thread(self._approvals.store.get, approval)
            if asked.data["kind"] == "host":
                # One that an earlier version stored names no scope: it opens the network, or undoes changes.
                older: Scope = "admin" if asked.data["subjects"] else "history"
                for scope in asked.data["details"].get("scope", older).split():
                    principal.require(scope)
        answered = await self._sessions.answer(
            approval, body.answer, who=principal.who, note=body.note, digest=body.digest
        )
        return _to_body(answered)
