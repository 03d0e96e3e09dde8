"""The files of the control center, which are part of the package. Each is a route of its own, added at the start."""

import mimetypes
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from freehold.gateway.routing import requires

STATIC = Path(__file__).parent.parent / "static"
# The build writes compressed copies beside each large file. Browsers take Brotli over TLS and from this machine.
SUFFIXES = {"br": ".br", "gzip": ".gz"}
NOT_BUILT = "The control center is not built.\n\nRun `make web` in the checkout, or install a released wheel, and reload this page.\n"
PAGES = (
    "/",
    "/sign-in",
    "/device",
    "/channels",
    "/code",
    "/git",
    "/sessions",
    "/history",
    "/history/diff",
    "/files",
    "/terminal",
    "/preview",
    "/desktop",
    "/editor",
    "/beads",
    "/events",
    "/pods",
    "/routines",
    "/workflows",
    "/runs",
    "/skills",
    "/memory",
    "/neighbours",
    "/mcp",
    "/network",
    "/backup",
    "/fleet",
    "/connect",
    "/credentials",
    "/settings",
    "/settings/access",
    "/settings/agents",
    "/settings/appearance",
    "/settings/budgets",
    "/settings/health",
    "/settings/isolation",
    "/settings/look",
    "/settings/manifest",
    "/settings/models",
    "/settings/room",
    "/settings/slots",
    "/settings/storage",
)


def add_pages(app: FastAPI, static: Path = STATIC) -> None:
    """The page is open to anyone: it has no secrets, and shows the sign-in page to a browser that is not signed in."""

    @requires("anyone")
    async def page(_request: Request) -> Response:
        index = static / "index.html"
        if not index.is_file():
            return Response(NOT_BUILT, status_code=503, media_type="text/plain")
        return FileResponse(index, media_type="text/html", headers={"cache-control": "no-cache"})

    @requires("anyone")
    async def documentation(_request: Request) -> Response:
        return RedirectResponse("/docs/index.html")

    for path in PAGES:
        app.router.routes.append(Route(path, page, include_in_schema=False))
    for path in ("/docs", "/docs/"):
        app.router.routes.append(Route(path, documentation, include_in_schema=False))
    if static.is_dir():
        for file in sorted(static.rglob("*")):
            if file.is_relative_to(static / "desktop"):
                continue  # the viewer of the desktop is served on an origin of its own
            if file.is_file() and file != static / "index.html" and file.suffix not in SUFFIXES.values():
                _add_file(app, f"/{file.relative_to(static)}", file)


def _add_file(app: FastAPI, path: str, file: Path) -> None:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    # The names of built assets contain a hash of their content.
    age = "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache"

    copies = {name: file.with_name(file.name + suffix) for name, suffix in SUFFIXES.items()}
    compressed = {name: copy for name, copy in copies.items() if copy.is_file()}

    @requires("anyone")
    async def asset(request: Request) -> Response:
        headers = {"cache-control": age, "vary": "accept-encoding"}
        accepted = request.headers.get("accept-encoding", "")
        for name, copy in compressed.items():
            if accepts(accepted, name):
                return FileResponse(copy, media_type=kind, headers={**headers, "content-encoding": name})
        return FileResponse(file, media_type=kind, headers=headers)

    app.router.routes.append(Route(path, asset, include_in_schema=False))


def accepts(accepted: str, encoding: str) -> bool:
    """Whether an Accept-Encoding header accepts an encoding."""
    for offer in accepted.lower().split(","):
        name, _, weight = offer.partition(";")
        if name.strip() == encoding:
            return weight.replace(" ", "").rstrip("0").rstrip(".") not in ("q=", "q=0")
    return False
