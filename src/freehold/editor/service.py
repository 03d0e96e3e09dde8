"""The editor while the gateway runs: it starts when its page is opened, and ends when no page is open for a while."""

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.types import Message, Receive, Scope, Send

from freehold.editor.exception import EDITOR_PORT
from freehold.editor.section import EditorSection
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import PreviewSite
from freehold.gateway.preview.on_demand_site import OnDemandSite
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from freehold.editor.code_server import CodeServer
    from freehold.gateway.context import RouteContext

# The page is on the owner's browser, where egress does not see it: it connects to nothing but its own origin.
_ALONE = b"connect-src 'self'; img-src 'self' data: blob:; frame-src 'self' data: blob:; form-action 'self'"
_WITH_GALLERY = b"connect-src 'self' https://open-vsx.org https://*.open-vsx.org https://openvsx.eclipsecontent.org; form-action 'self'"


class EditorService(OnDemandSite["CodeServer"]):
    """The one editor of this Freehold, in the computer `main`."""

    site_name = "editor"

    def __init__(self, services: Services) -> None:
        self.section = services.manifest.section(EditorSection)
        self._services = services
        super().__init__(self.section)

    def start_program(self) -> "AbstractAsyncContextManager[CodeServer]":
        from freehold.editor.code_server import start_code_server

        return start_code_server(self._services.computer, self.section)

    def explain_disabled(self) -> FreeholdError:
        return FreeholdError(
            "editor.disabled",
            "The editor is switched off",
            hint="Set editor.enabled and [security.exceptions.editor] in freehold.toml",
        )

    async def serve_site(self, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
        from freehold.gateway.preview.requests import forward_request, open_exchange
        from freehold.gateway.preview.sockets import relay_socket

        site = replace(site, port=EDITOR_PORT)
        async with self.use() as editor, await editor.connect() as tunnel:
            inside: Scope = {**scope, "headers": add_password(scope["headers"], editor.cookie)}
            if scope["type"] == "websocket":
                await relay_socket(tunnel, site, inside, receive, send)
            else:
                exchange = open_exchange(tunnel, inside, site)
                await forward_request(exchange, site, inside, receive, self._restrict(send))

    def _restrict(self, send: Send) -> Send:
        policy = _WITH_GALLERY if self.section.gallery else _ALONE

        async def send_restricted(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"content-security-policy", policy)]}
            await send(message)

        return send_restricted


def add_password(headers: list[tuple[bytes, bytes]], cookie: str) -> list[tuple[bytes, bytes]]:
    """The headers of a browser with the password of the editor, which the browser does not have."""
    name = cookie.partition("=")[0].encode() + b"="
    given = [part.strip() for key, value in headers if key == b"cookie" for part in value.split(b";")]
    kept = [part for part in given if part and not part.startswith(name)]
    others = [(key, value) for key, value in headers if key != b"cookie"]
    return [*others, (b"cookie", b"; ".join([*kept, cookie.encode()]))]


def make_editor_service(context: "RouteContext") -> EditorService:
    return EditorService(context.services)


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        return None if services.manifest.section(EditorSection).enabled else ProbeResult("off")

    return probe
