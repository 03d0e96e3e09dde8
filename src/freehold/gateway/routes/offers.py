"""What the agent of a session lets be chosen and commanded."""

import asyncio
from typing import Annotated

from fastapi import FastAPI, Path
from pydantic import BaseModel, Field

from freehold.agents.offering import read_offer
from freehold.agents.room import Room
from freehold.gateway.needs import needs


class OfferedChoice(BaseModel):
    id: str
    name: str
    description: str


class OfferedOption(BaseModel):
    """An option of the agent's own; without choices it is on or off."""

    id: str
    name: str
    category: str
    type: str
    value: str | bool | None
    choices: list[OfferedChoice]


class OfferedOptions(BaseModel):
    """Modes in which the agent would act unasked are not among them; `asks` says whether it asks now."""

    mode: str | None
    modes: list[OfferedChoice]
    model: str | None
    models: list[OfferedChoice]
    config: list[OfferedOption]
    asks: bool


class OfferedCommand(BaseModel):
    name: str
    description: str


class AgentOffer(BaseModel):
    """As the agent last told. With `own` false it told another session of its: what is chosen there is not chosen here."""

    options: OfferedOptions | None
    commands: list[OfferedCommand] = Field(description="What may follow a slash at the beginning of a prompt.")
    own: bool


def add_offers(app: FastAPI, room: Room) -> None:
    @app.get("/v1/sessions/{session}/offer")
    @needs("read")
    async def read_agent_offer(session: Annotated[str, Path(max_length=64)]) -> AgentOffer:
        """Modes, models, options and commands of its agent, whether it runs or not."""
        await room.ready.wait()
        return AgentOffer.model_validate(
            await asyncio.to_thread(read_offer, room.ground.store, session), from_attributes=True
        )
