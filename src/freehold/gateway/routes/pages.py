"""The control center's files, built into the package: every one a route of its own, known at start."""

import mimetypes
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, Response

from freehold.gateway.needs import needs

STATIC = Path(__file__).parent.parent / "static"
# Beside a file that is worth it lies its packed self, made with the build.
PACKED = ".gz"
NOT_BUILT = "The control center is not built.\n\nRun `make web` in the checkout, or install a released wheel, and reload this page.\n"
PAGES = (
    "/",
    "/sign-in",
    "/device",
    "/sessions",
    "/history",
    "/history/diff",
    "/files",
    "/terminal",
    "/preview",
    "/network",
    "/connect",
    "/settings",
    "/settings/access",
    "/settings/agents",
    "/settings/budgets",
    "/settings/health",
    "/settings/isolation",
    "/settings/look",
    "/settings/models",
    "/settings/room",
)


def add_pages(app: FastAPI, static: Path = STATIC) -> None:
    """The shell is open to anyone: it holds no secret, and shows the door to those who are not signed in."""

    @needs("anyone")
    async def shell() -> Response:
        index = static / "index.html"
        if not index.is_file():
            return Response(NOT_BUILT, status_code=503, media_type="text/plain")
        return FileResponse(index, media_type="text/html", headers={"cache-control": "no-cache"})

    for page in PAGES:
        app.add_api_route(page, shell, methods=["GET"], include_in_schema=False)
    if static.is_dir():
        for file in sorted(static.rglob("*")):
            if file.is_file() and file.name != "index.html" and file.suffix != PACKED:
                _add_file(app, f"/{file.relative_to(static)}", file)


def _add_file(app: FastAPI, path: str, file: Path) -> None:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    # Built assets carry their content's hash in their name.
    age = "public, max-age=31536000, immutable" if path.startswith("/assets/") else "no-cache"

    packed = file.with_name(file.name + PACKED)
    has_packed = packed.is_file()

    @needs("anyone")
    async def asset(request: Request) -> Response:
        headers = {"cache-control": age, "vary": "accept-encoding"}
        if has_packed and takes_gzip(request.headers.get("accept-encoding", "")):
            return FileResponse(packed, media_type=kind, headers={**headers, "content-encoding": "gzip"})
        return FileResponse(file, media_type=kind, headers=headers)

    app.add_api_route(path, asset, methods=["GET"], include_in_schema=False)


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding names gzip and does not refuse it."""
    for offer in accepted.lower().split(","):
        name, _, weight = offer.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "").rstrip("0").rstrip(".") not in ("q=", "q=0")
    return False
