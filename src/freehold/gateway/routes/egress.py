"""What may leave the computer, and what waits for the owner's word."""

from typing import Any, Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs


class EgressState(BaseModel):
    """The mode, the rules in force, what waits for an answer and what was decided last."""

    mode: Literal["deny", "ask", "allow"]
    rules: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    recent: list[dict[str, Any]]
    connections: int
    counters: dict[str, int]


class AnswerQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: Literal["once", "session", "always", "never"]


class EgressRule(BaseModel):
    """A host name, `*.` and a host name, or an address, with an optional port."""

    model_config = ConfigDict(extra="forbid")
    verdict: Literal["allow", "deny"]
    pattern: str = Field(min_length=1, max_length=300)


def add_egress(app: FastAPI, house: House) -> None:
    def state() -> EgressState:
        return EgressState.model_validate(house.sealed.egress.snapshot().as_json())

    @app.get("/v1/egress")
    @needs("read")
    async def read_egress() -> EgressState:
        """What may leave the computer."""
        return state()

    @app.post("/v1/egress/questions/{question}")
    @needs("admin")
    async def answer_question(question: int, body: AnswerQuestion, request: Request) -> EgressState:
        """Answer a pending question; whoever waits goes on at once."""
        await house.sealed.egress.answer(question, body.answer, who=principal_of(request.scope).who)
        return state()

    @app.post("/v1/egress/rules", status_code=201)
    @needs("admin")
    async def add_rule(body: EgressRule, request: Request) -> EgressState:
        """Allow or deny a host from now on."""
        await house.sealed.egress.add_rule(body.verdict, body.pattern, who=principal_of(request.scope).who)
        return state()

    @app.delete("/v1/egress/rules/{pattern}")
    @needs("admin")
    async def forget_rule(pattern: str, request: Request) -> EgressState:
        """Forget a rule; connections that lived by it are cut."""
        await house.sealed.egress.forget_rule(pattern, who=principal_of(request.scope).who)
        return state()
