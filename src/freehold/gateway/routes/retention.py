"""What is kept, for how long and where."""

import asyncio

from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.routing import get
from freehold.retention import read_retention
from freehold.strict_json import encode


class RetentionRuleBody(BaseModel):
    """How long one kind of record is kept."""

    name: str
    title: str
    kept: str = Field(description="The rule in words.")
    now: str = Field(description="What there is; empty when nothing is measured.")
    last_archived: str | None = Field(
        description="When old records were last moved to an archive, in UTC. Null when never."
    )
    where: list[str] = Field(description="Files and folders on the host.")
    setting: str | None = Field(description="The setting in freehold.toml that changes the rule.")


class RetentionBody(BaseModel):
    rules: list[RetentionRuleBody]


class RetentionRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/retention", scope="admin")
    async def read_retention(self) -> RetentionBody:
        """What is kept, for how long and where, and when old records were last archived or summed."""
        services = self._services
        report = await asyncio.to_thread(read_retention, services.home, services.manifest, services.timeline)
        return RetentionBody.model_validate(encode(report))
