"""What a route requires of who uses it, and where the guard notes the route that it has chosen.

Apart from the routes themselves, so that the start of the gateway does not load the framework.
"""

from typing import Literal

from freehold.identity.tokens import Scope

RouteScope = Literal["anyone", "browser"] | Scope
"""`anyone` is open to the world. `browser` accepts a signed-in browser and no API token. Every other word is a scope,
which a signed-in browser always has, and an API token has when it was created with it."""
ConnectionKind = Literal["http", "websocket"]

ROUTE_KEY = "freehold.route"
"""The entry of an ASGI scope."""
