"""Runs the route that the guard has chosen, so that the framework cannot choose another."""

from typing import TYPE_CHECKING

from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from freehold.gateway.route_scope import ROUTE_KEY
from freehold.gateway.routing import DeferredRoute

if TYPE_CHECKING:
    from fastapi import FastAPI


class RouteDispatcher:
    """Replaces the framework's route lookup. Without a chosen route (lifespan, or no guard) the framework's own is used."""

    def __init__(self, fallback: ASGIApp) -> None:
        self._fallback = fallback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route | WebSocketRoute | None = scope.get(ROUTE_KEY)
        if route is None:
            await self._fallback(scope, receive, send)
            return
        if isinstance(route, DeferredRoute):
            route = route.build()
        match, found = route.matches(scope)
        if match is not Match.FULL:
            raise RuntimeError(f"{route.path} does not match the request for which the guard chose it")
        scope.update(found)
        await route.handle(scope, receive, send)


def add_dispatcher(app: "FastAPI") -> None:
    app.router.middleware_stack = RouteDispatcher(app.router.middleware_stack)
