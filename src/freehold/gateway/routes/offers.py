"""The modes, models, options and commands that the agent of a session offers."""

import asyncio

from pydantic import BaseModel, Field

from freehold.agents.sessions.offered_options import read_offered_options
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlId
from freehold.gateway.routing import get


class OfferedChoiceBody(BaseModel):
    id: str
    name: str
    description: str


class OfferedOptionBody(BaseModel):
    """An option of the agent. Without choices it is on or off."""

    id: str
    name: str
    category: str
    type: str
    value: str | bool | None
    choices: list[OfferedChoiceBody]


class OfferedOptionsBody(BaseModel):
    """Modes in which the agent would act without asking are left out. `asks` says whether it asks now."""

    mode: str | None
    modes: list[OfferedChoiceBody]
    model: str | None
    models: list[OfferedChoiceBody]
    config: list[OfferedOptionBody]
    asks: bool


class OfferedCommandBody(BaseModel):
    name: str
    description: str


class AgentOfferBody(BaseModel):
    """The last offer of the agent. When `own` is false it was made to another session of the same agent."""

    options: OfferedOptionsBody | None
    commands: list[OfferedCommandBody] = Field(
        description="Commands that may follow a slash at the beginning of a prompt."
    )
    own: bool
    chosen_model: str | None = Field(
        description="The name of the model that was chosen among the agent's own. The agent uses it, whatever model the "
        "session has."
    )


class OfferRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._sessions = context.sessions

    @get("/v1/sessions/{session}/offer", scope="read")
    async def read_agent_offer(self, session: UrlId) -> AgentOfferBody:
        """The offer of a session's agent, whether it runs or not."""
        await self._sessions.ready.wait()
        return AgentOfferBody.model_validate(
            await asyncio.to_thread(read_offered_options, self._sessions.dependencies.store, session),
            from_attributes=True,
        )
