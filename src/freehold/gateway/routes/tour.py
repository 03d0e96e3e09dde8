"""The tour: a session with a script in the place of a model."""

from fastapi import Request
from pydantic import BaseModel

from freehold.gateway.context import RouteContext
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import post


class TourBody(BaseModel):
    """The tour begins when `prompt` is sent to the session."""

    session: str
    prompt: str


class TourRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._tour = context.tour

    @post("/v1/tour", scope="prompt")
    async def open_tour(self, request: Request) -> TourBody:
        """Open a session in which a real agent changes a real file, with a script in the place of a model."""
        opened = await self._tour.open(who=principal_of(request.scope).who)
        return TourBody(session=opened.row.id, prompt=opened.prompt)
