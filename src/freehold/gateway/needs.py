"""What a route asks of whoever calls it. A route that declares nothing does not start."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from freehold.identity.tokens import Scope

Need = Literal["anyone", "browser"] | Scope

F = TypeVar("F", bound=Callable[..., Any])


def needs(need: Need) -> Callable[[F], F]:
    """Declare what an endpoint needs.

    `anyone` is open to the world; `browser` takes a signed-in browser and no API token; every other word is a scope,
    which a browser session always has and a token has when it was given.
    """

    def declare(endpoint: F) -> F:
        endpoint.__freehold_need__ = need  # type: ignore[attr-defined]
        return endpoint

    return declare


@dataclass(frozen=True)
class Declared:
    """One route as the guard sees it: of `kind` http or websocket, for a method (or all), at a path."""

    kind: Literal["http", "websocket"]
    methods: frozenset[str]
    path: str
    pattern: re.Pattern[str]
    need: Need


class NeedTable:
    """Finds what a request needs before the application sees it. Unknown paths need what the API needs: `read`."""

    def __init__(self, declared: Iterable[Declared]) -> None:
        self.declared = tuple(declared)
        self._exact: dict[tuple[str, str, str], Need] = {}
        self._patterns: list[Declared] = []
        for route in self.declared:
            if "{" in route.path:
                self._patterns.append(route)
                continue
            for method in route.methods:
                self._exact[route.kind, method, route.path] = route.need

    def find(self, kind: str, method: str, path: str) -> Need:
        need = self._exact.get((kind, method, path))
        if need is not None:
            return need
        for route in self._patterns:
            if route.kind == kind and method in route.methods and route.pattern.match(path):
                return route.need
        return "read"


def read_needs(routes: Iterable[BaseRoute]) -> NeedTable:
    """Collect every route's declaration; refuse to start when one is missing."""
    declared: list[Declared] = []
    silent: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            raise TypeError(f"{route.path} is a mount: the guard cannot see what is inside; add plain routes")
        if not isinstance(route, Route | WebSocketRoute):
            raise TypeError(f"{route!r} is of a kind the guard does not know")
        need: Need | None = getattr(route.endpoint, "__freehold_need__", None)
        if need is None:
            silent.append(route.path)
        elif isinstance(route, WebSocketRoute):
            declared.append(Declared("websocket", frozenset({"GET"}), route.path, route.path_regex, need))
        else:
            methods = frozenset(route.methods or ())
            declared.append(Declared("http", methods, route.path, route.path_regex, need))
    if silent:
        raise RuntimeError(f"routes that declare no need: {', '.join(sorted(silent))}")
    return NeedTable(declared)
