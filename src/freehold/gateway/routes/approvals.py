"""Permission requests of agents, and the rules that answer some of them."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.permission_rules import MAX_PATTERN, MAX_RULES, PermissionRule
from freehold.gateway.context import RouteContext
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post, put


class ApprovalInfoBody(BaseModel):
    """A permission request. `details` has the exact command or change, with hidden characters made visible.

    When `details.kind` is "question" the agent asks for text: `details.input` is the question, `details.options` are
    the choices, and `details.free_text` says whether other text is accepted. With neither, the answer is yes or no.
    `note` is the owner's text. `options` are the answers that this request accepts.
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


class AnswerApprovalBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: Literal["once", "conversation", "always", "reject"]
    note: str | None = Field(
        default=None,
        max_length=2000,
        description="For a question: the text or the choice (with the answer `once`). Otherwise: the next prompt.",
    )


class WritePermissionRuleBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    effect: Literal["allow", "ask", "deny"]
    kind: str = Field(max_length=40)
    pattern: str = Field(min_length=1, max_length=MAX_PATTERN)
    exact: bool = False


class WriteApprovalPolicyBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
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

    @get("/v1/approvals", scope="read")
    async def list_approvals(self) -> list[ApprovalInfoBody]:
        """The permission requests that wait for an answer, oldest first."""
        await self._sessions.ready.wait()
        return [_to_body(each) for each in await asyncio.to_thread(self._approvals.store.list_pending)]

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
    async def answer_approval(
        self, approval: Annotated[str, Path(max_length=64)], body: AnswerApprovalBody, request: Request
    ) -> ApprovalInfoBody:
        """Answer once: `once`, `conversation`, `always` or `reject`. A note is the next prompt, or the answer to a question."""
        answered = await self._sessions.answer(
            approval, body.answer, who=principal_of(request.scope).who, note=body.note
        )
        return _to_body(answered)
