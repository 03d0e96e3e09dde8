"""Runs the very route that the guard has decided about, so that the framework cannot choose another."""

from fastapi import FastAPI
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

DECIDED = "freehold.route"


class Dispatch:
    """Stands in the framework's router. Without a decision (at start and stop, and unguarded) that looks for itself."""

    def __init__(self, look: ASGIApp) -> None:
        self._look = look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route | WebSocketRoute | None = scope.get(DECIDED)
        if route is None:
            await self._look(scope, receive, send)
            return
        match, found = route.matches(scope)
        if match is not Match.FULL:
            raise RuntimeError(f"{route.path} does not match what the guard found for it")
        scope.update(found)
        await route.handle(scope, receive, send)


def add_dispatch(app: FastAPI) -> None:
    app.router.middleware_stack = Dispatch(app.router.middleware_stack)
