"""What a route asks of whoever calls it. A route that declares nothing does not start."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from freehold.identity.tokens import Scope

Need = Literal["anyone", "browser"] | Scope
Kind = Literal["http", "websocket"]

MAX_BODY = 8 * 1024 * 1024

F = TypeVar("F", bound=Callable[..., Any])


def needs(need: Need, *, most_body: int = MAX_BODY) -> Callable[[F], F]:
    """Declare what an endpoint needs, and how many bytes it takes.

    `anyone` is open to the world; `browser` takes a signed-in browser and no API token; every other word is a scope,
    which a browser session always has and a token has when it was given.
    """

    def declare(endpoint: F) -> F:
        endpoint.__freehold_need__ = (need, most_body)  # type: ignore[attr-defined]
        return endpoint

    return declare


@dataclass(frozen=True)
class Declared:
    """One route as the guard sees it: of `kind` http or websocket, for a method (or all), at a path."""

    kind: Kind
    methods: frozenset[str]
    path: str
    route: Route | WebSocketRoute
    need: Need
    most_body: int = MAX_BODY


class NeedTable:
    """Finds the route of a request before the application sees it, exactly as the application would.

    What is found nowhere here never reaches the application, so the two cannot be of different minds.
    """

    def __init__(self, declared: Iterable[Declared]) -> None:
        self.declared = tuple(declared)
        self._exact: dict[tuple[str, str, str], Declared] = {}
        self._patterns: list[Declared] = []
        for route in self.declared:
            if "{" in route.path:
                self._patterns.append(route)
                continue
            for method in route.methods:
                shadow = self.find(route.kind, method, route.path)
                if shadow is not None:
                    # The application would run the earlier one, with the later one's need.
                    raise RuntimeError(f"{method} {route.path} is hidden by {shadow.path}: declare it earlier")
                self._exact[route.kind, method, route.path] = route

    def find(self, kind: str, method: str, path: str) -> Declared | None:
        route = self._exact.get((kind, method, path))
        if route is not None:
            return route
        for route in self._patterns:
            if route.kind == kind and method in route.methods and route.route.path_regex.match(path):
                return route
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path takes, for those who tried another."""
        return sorted({m for route in self.declared for m in route.methods if self.find("http", m, path) is not None})


def read_needs(routes: Iterable[BaseRoute]) -> NeedTable:
    """Collect every route's declaration; refuse to start when one is missing."""
    declared: list[Declared] = []
    silent: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            raise TypeError(f"{route.path} is a mount: the guard cannot see what is inside; add plain routes")
        if not isinstance(route, Route | WebSocketRoute):
            raise TypeError(f"{route!r} is of a kind the guard does not know")
        found: tuple[Need, int] | None = getattr(route.endpoint, "__freehold_need__", None)
        if found is None:
            silent.append(route.path)
            continue
        kind: Kind = "websocket" if isinstance(route, WebSocketRoute) else "http"
        methods = frozenset({"GET"} if isinstance(route, WebSocketRoute) else route.methods or ())
        declared.append(Declared(kind, methods, route.path, route, *found))
    if silent:
        raise RuntimeError(f"routes that declare no need: {', '.join(sorted(silent))}")
    return NeedTable(declared)
