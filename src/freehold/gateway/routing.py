"""How routes are declared, and the table in which the guard finds them.

A group of routes is a class. Its methods are the handlers, each with one decorator that names address and scope:

    class TimelineRoutes:
        def __init__(self, context: RouteContext) -> None: ...

        @get("/v1/timeline", scope="read")
        async def read_timeline(self, after: int = 0) -> TimelineEventsBody: ...

`add_routes(app, TimelineRoutes(context))` adds them in the order of the class. The name of a method is the operation id
of its route. With a route without a scope, the gateway serves none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from freehold.gateway.route_scope import ConnectionKind, RouteScope

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_BODY = 8 * 1024 * 1024

F = TypeVar("F", bound=Callable[..., Any])


def requires(scope: RouteScope, *, max_body: int = MAX_BODY) -> Callable[[F], F]:
    """Declare which scope an endpoint requires, and the size limit of its request body in bytes."""

    def declare(endpoint: F) -> F:
        endpoint.__freehold_scope__ = (scope, max_body)  # type: ignore[attr-defined]
        return endpoint

    return declare


@dataclass(frozen=True)
class RouteDeclaration:
    """What a decorator below has noted on a handler. `method` is None for a WebSocket."""

    method: str | None
    path: str
    options: dict[str, Any] = field(default_factory=dict)


def _declare(
    method: str | None, path: str, *, scope: RouteScope, max_body: int = MAX_BODY, **options: Any
) -> Callable[[F], F]:
    def declare(handler: F) -> F:
        handler.__freehold_route__ = RouteDeclaration(method, path, options)  # type: ignore[attr-defined]
        return requires(scope, max_body=max_body)(handler)

    return declare


# Each takes the path, `scope`, `max_body`, and the options of FastAPI's `add_api_route`.
get = partial(_declare, "GET")
post = partial(_declare, "POST")
put = partial(_declare, "PUT")
patch = partial(_declare, "PATCH")
delete = partial(_declare, "DELETE")
websocket = partial(_declare, None)


class DeferredRoute(Route):
    """A route that the framework builds at its first request: the models of one nobody uses cost nothing."""

    def __init__(self, app: "FastAPI", declared: RouteDeclaration, handler: Callable[..., Any]) -> None:
        assert declared.method is not None  # a socket has no models
        super().__init__(declared.path, handler, methods=[declared.method])
        self._app = app
        self._declared = declared
        self._built: BaseRoute | None = None

    def build(self) -> Route:
        """The route as the framework builds it. Idempotent."""
        if self._built is None:
            declared = self._declared
            self._app.add_api_route(declared.path, self.endpoint, methods=[str(declared.method)], **declared.options)
            self._built = self._app.router.routes.pop()  # this route has a place in the list already
        assert isinstance(self._built, Route)
        return self._built


def add_routes(app: "FastAPI", group: object) -> None:
    """Add every declared method of the group, in the order in which its class defines them."""
    for name, function in vars(type(group)).items():
        declared: RouteDeclaration | None = getattr(function, "__freehold_route__", None)
        if declared is None:
            continue
        handler = getattr(group, name)
        if declared.method is None:
            app.router.routes.append(WebSocketRoute(declared.path, handler))
        else:
            app.router.routes.append(DeferredRoute(app, declared, handler))


def build_all(app: "FastAPI") -> None:
    """Build every route, for a description of the whole API."""
    app.router.routes[:] = [route.build() if isinstance(route, DeferredRoute) else route for route in app.router.routes]


@dataclass(frozen=True)
class ScopedRoute:
    """One route as the guard sees it."""

    kind: ConnectionKind
    methods: frozenset[str]
    path: str
    route: Route | WebSocketRoute
    scope: RouteScope
    max_body: int = MAX_BODY


class RouteTable:
    """Finds the route of a request before the application sees it, by the same rules as the application.

    A request without a route in this table never reaches the application.
    """

    def __init__(self, routes: Iterable[ScopedRoute]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[tuple[str, str, str], ScopedRoute] = {}
        self._exact_paths: set[tuple[str, str]] = set()
        self._patterns: list[ScopedRoute] = []
        for route in self.routes:
            if "{" in route.path:
                self._patterns.append(route)
                continue
            for method in route.methods:
                shadow = self.find(route.kind, method, route.path)
                if shadow is not None:
                    # The application would run the earlier route, with the scope of the later one.
                    raise RuntimeError(f"{method} {route.path} is hidden by {shadow.path}: declare it earlier")
                self._exact[route.kind, method, route.path] = route
            self._exact_paths.add((route.kind, route.path))

    def find(self, kind: str, method: str, path: str) -> ScopedRoute | None:
        """An exact path accepts only its own methods: `GET /v1/history/undo` is not the entry `undo`."""
        route = self._exact.get((kind, method, path))
        if route is not None or (kind, path) in self._exact_paths:
            return route
        for route in self._patterns:
            if route.kind == kind and method in route.methods and route.route.path_regex.match(path):
                return route
        return None

    def list_methods(self, path: str) -> list[str]:
        """The HTTP methods that a path accepts. The guard handles HEAD as GET."""
        found = {m for route in self.routes for m in route.methods if self.find("http", m, path) is not None}
        return sorted(found | {"HEAD"} if "GET" in found else found)


def read_route_table(routes: Iterable[BaseRoute]) -> RouteTable:
    """Collect the scope of every route. Raises RuntimeError or TypeError when a route declares none."""
    found: list[ScopedRoute] = []
    undeclared: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            raise TypeError(f"{route.path} is a mount: the guard cannot see its routes. Add plain routes instead.")
        if not isinstance(route, Route | WebSocketRoute):
            raise TypeError(f"{route!r} is of a type that the guard does not support")
        declared: tuple[RouteScope, int] | None = getattr(route.endpoint, "__freehold_scope__", None)
        if declared is None:
            undeclared.append(route.path)
            continue
        kind: ConnectionKind = "websocket" if isinstance(route, WebSocketRoute) else "http"
        methods = frozenset({"GET"} if isinstance(route, WebSocketRoute) else route.methods or ()) - {"HEAD"}
        found.append(ScopedRoute(kind, methods, route.path, route, *declared))
    if undeclared:
        raise RuntimeError(f"routes that declare no scope: {', '.join(sorted(undeclared))}")
    return RouteTable(found)
