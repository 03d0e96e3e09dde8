"""The relay of this Freehold: `/relay`. Its information document is NIP-11."""

from fastapi import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from freehold import __version__
from freehold.gateway.context import RouteContext
from freehold.gateway.routing import get, websocket
from freehold.mesh.service import MeshService

NIP_11 = "application/nostr+json"


class RelayRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._service = context.service(MeshService)

    @get("/relay", include_in_schema=False, scope="anyone")
    async def describe_relay(self, request: Request) -> Response:
        """What the relay supports. It names neither its owner nor its key: strangers learn nothing."""
        from freehold.mesh import relay_server
        from freehold.mesh.nostr.filter import MAX_LIMIT

        section = self._service.mesh.require_relay().section
        found = {
            "name": "Freehold",
            "version": __version__,
            "supported_nips": [1, 11, 17, 42, 59],
            "limitation": {
                "auth_required": True,
                "restricted_writes": section.readers == "neighbours",
                "max_message_length": relay_server.MAX_MESSAGE,
                "max_subscriptions": relay_server.MAX_SUBSCRIPTIONS,
                "max_subid_length": relay_server.MAX_SUBSCRIPTION_ID,
                "max_limit": MAX_LIMIT,
                "created_at_upper_limit": relay_server.MAX_AHEAD,
            },
        }
        return JSONResponse(found, media_type=NIP_11)

    @websocket("/relay", scope="anyone")
    async def serve_relay(self, socket: WebSocket) -> None:
        await self._service.mesh.require_relay().server.serve(socket)
