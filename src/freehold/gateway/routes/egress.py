"""Egress: the rules in force, and the network requests that wait for the owner."""

from typing import Annotated, Any, Literal

from fastapi import Path, Request
from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlPositive
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post


class EgressStateBody(BaseModel):
    """The mode, the rules in force, the network requests that wait and the last decisions.

    `reach` of a rule is `manifest`, `always`, `until_restart` or `conversation`; a `conversation` rule names its
    `session`. `session` of a network request is the session that asked, or null for a program of no session.
    """

    mode: Literal["deny", "ask", "allow"]
    rules: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    recent: list[dict[str, Any]]
    connections: int
    counters: dict[str, int]


class AnswerNetworkRequestBody(RequestBody):
    """`conversation` holds only for the session that asked, and is refused for a request of no session."""

    answer: Literal["once", "conversation", "until_restart", "always", "never"]


class AddEgressRuleBody(RequestBody):
    """A host name, `*.` and a host name, or an address, with an optional port."""

    verdict: Literal["allow", "deny"]
    pattern: str = Field(min_length=1, max_length=300)


class EgressRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    def _state(self) -> EgressStateBody:
        return EgressStateBody.model_validate(self._services.egress.status().as_json())

    @get("/v1/egress", scope="read")
    async def read_egress(self) -> EgressStateBody:
        """The rules in force and the network requests that wait."""
        return self._state()

    @post("/v1/egress/requests/{number}", scope="admin")
    async def answer_network_request(
        self, number: UrlPositive, body: AnswerNetworkRequestBody, request: Request
    ) -> EgressStateBody:
        """Answer a network request. A connection that waits for it continues at once."""
        await self._services.egress.answer(number, body.answer, who=principal_of(request.scope).who)
        return self._state()

    @post("/v1/egress/rules", status_code=201, scope="admin")
    async def add_rule(self, body: AddEgressRuleBody, request: Request) -> EgressStateBody:
        """Allow or deny a host from now on."""
        await self._services.egress.add_rule(body.verdict, body.pattern, who=principal_of(request.scope).who)
        return self._state()

    @delete("/v1/egress/rules/{pattern}", scope="admin")
    async def remove_rule(self, pattern: Annotated[str, Path(max_length=300)], request: Request) -> EgressStateBody:
        """Remove a rule. Connections that it allowed are cut."""
        await self._services.egress.remove_rule(pattern, who=principal_of(request.scope).who)
        return self._state()
