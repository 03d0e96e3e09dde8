"""Questions of agents to the owner, and the rules that answer some of them."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.agents.approvals import Approval
from freehold.agents.policy import MAX_PATTERN, MAX_RULES, Rule
from freehold.agents.room import Room
from freehold.gateway.guard import principal_of
from freehold.gateway.needs import needs


class ApprovalView(BaseModel):
    """A question: `details` holds the exact command or change, hidden characters spelled out.

    With `details.kind` "question" it is words that are asked for: `details.input` is the question, `details.options`
    are the choices, and `details.free_text` says whether other words are taken; with neither it is yes or no.
    `note` is what the owner said. `options` are the answers that mean something here.
    """

    id: str
    session: str
    turn: int | None
    at: str
    state: Literal["pending", "answered", "withdrawn", "granted"]
    answer: Literal["once", "session", "always", "reject"] | None
    note: str | None
    options: list[Literal["once", "session", "always", "reject"]]
    tool: str | None
    kind: str
    title: str
    details: dict[str, Any]


class PolicyRule(BaseModel):
    """`exact` rules match one subject, others a pattern with `*`. Those with a session end with it."""

    id: int
    effect: Literal["allow", "ask", "deny"]
    kind: str
    pattern: str
    exact: bool
    session: str | None


class ApprovalPolicy(BaseModel):
    """Deny wins over ask, ask over allow; what no rule names is asked."""

    rules: list[PolicyRule]


class AnswerApproval(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: Literal["once", "session", "always", "reject"]
    note: str | None = Field(
        default=None,
        max_length=2000,
        description="To a question that asks for words, the words or the choice (with answer `once`); else the next prompt.",
    )


class WriteRule(BaseModel):
    model_config = ConfigDict(extra="forbid")
    effect: Literal["allow", "ask", "deny"]
    kind: str = Field(max_length=40)
    pattern: str = Field(min_length=1, max_length=MAX_PATTERN)
    exact: bool = False


class WritePolicy(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rules: list[WriteRule] = Field(max_length=MAX_RULES)


def _view(approval: Approval) -> ApprovalView:
    return ApprovalView.model_validate(approval.as_json())


def add_approvals(app: FastAPI, room: Room) -> None:
    approvals = room.ground.approvals

    def policy() -> ApprovalPolicy:
        return ApprovalPolicy(rules=[PolicyRule.model_validate(rule.as_json()) for rule in approvals.policy.rules()])

    @app.get("/v1/approvals")
    @needs("read")
    async def list_approvals() -> list[ApprovalView]:
        """Those that wait, the oldest first."""
        await room.ready.wait()
        return [_view(each) for each in await asyncio.to_thread(approvals.pending)]

    @app.get("/v1/approvals/policy")
    @needs("admin")
    async def get_policy() -> ApprovalPolicy:
        await room.ready.wait()
        return await asyncio.to_thread(policy)

    @app.put("/v1/approvals/policy")
    @needs("admin")
    async def put_policy(body: WritePolicy, request: Request) -> ApprovalPolicy:
        """Put these rules in the place of all that do not belong to a session."""
        await room.ready.wait()
        rules = [Rule(one.effect, one.kind, one.pattern, one.exact) for one in body.rules]
        await asyncio.to_thread(approvals.policy.replace, rules, who=principal_of(request.scope).who)
        return await asyncio.to_thread(policy)

    @app.post("/v1/approvals/{approval}")
    @needs("prompt")
    async def answer_approval(
        approval: Annotated[str, Path(max_length=64)], body: AnswerApproval, request: Request
    ) -> ApprovalView:
        """Answer, once: for this call, for the session, for ever, or no. A note is the next prompt, or the answer itself."""
        answered = await room.answer(approval, body.answer, who=principal_of(request.scope).who, note=body.note)
        return _view(answered)
