"""The record that names the key in the owner's account: `/v1/mesh/record`, and the way back from the account."""

from fastapi import Request, Response
from starlette.responses import JSONResponse, RedirectResponse

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.page import PageLink, render_page
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.mesh.bodies import AccountRecordBody, BeginRecordBody, RecordRedirectBody
from freehold.mesh.service import MeshService

COOKIE = "__Host-freehold-record"
COOKIE_SECONDS = 600
PAGE = "/neighbours"


class RecordRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._service = context.service(MeshService)
        self._sign_in = context.sign_in

    @get("/v1/mesh/record", scope="read")
    async def get_account_record(self) -> AccountRecordBody:
        """Whether the owner's account names the key of this Freehold."""
        from freehold.mesh.nostr.keys import show_key

        mesh = self._service.mesh
        proof = await mesh.proofs.prove(mesh.did, mesh.key.public)
        return AccountRecordBody(did=mesh.did, npub=show_key(mesh.key.public), proof=proof)

    @post("/v1/mesh/record", scope="browser")
    async def begin_account_record(
        self, _body: BeginRecordBody, request: Request, response: Response
    ) -> RecordRedirectBody:
        """Have the owner's account name the key of this Freehold. The browser must open the returned address."""
        mesh = self._service.mesh
        self._sign_in.count_attempt(principal_of(request.scope).address)
        started = await mesh.record.flow.start()
        response.set_cookie(
            COOKIE, started.binding, max_age=COOKIE_SECONDS, path="/", secure=True, httponly=True, samesite="lax"
        )
        return RecordRedirectBody(redirect=started.redirect)

    @get("/oauth/record/callback", include_in_schema=False, scope="anyone")
    async def finish_account_record(self, request: Request) -> Response:
        from freehold.identity.atproto.problems import SignInProblem

        back = PageLink("Back to your neighbours", PAGE)
        response: Response
        try:
            self._sign_in.count_callback(principal_of(request.scope).address)
            await self._service.mesh.record.finish(request.query_params.multi_items(), request.cookies.get(COOKIE))
        except SignInProblem as problem:
            response = render_page(
                title=problem.title, message=problem.message, hint=problem.hint, status=problem.kind.status, link=back
            )
        except FreeholdError as error:
            response = render_page(
                title="Your account was not changed",
                message=error.message,
                hint=error.hint,
                status=error.kind.status,
                link=back,
            )
        else:
            response = RedirectResponse(PAGE, status_code=303)
        response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        return response

    @get("/oauth/record/client-metadata.json", include_in_schema=False, scope="anyone")
    async def describe_record_client(self) -> Response:
        found = self._service.mesh.record.flow.client.metadata()
        if found is None:
            raise FreeholdError("mesh.not-found", "A Freehold without a public address has no OAuth client document")
        return JSONResponse(found, headers={"cache-control": "no-cache"})
