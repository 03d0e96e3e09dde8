"""Tells history who changes files through the API, and why. A change is made also when the keeper does not answer."""

import contextlib
from collections.abc import AsyncIterator

from starlette.requests import Request

from freehold.errors import FreeholdError
from freehold.gateway.principal import principal_of
from freehold.gateway.services import Services
from freehold.history.calls import NoteAuthor, Phase, RequestAuthor

MAX_REASON_LENGTH = 300


def make_author(request: Request) -> RequestAuthor:
    """The owner, with the sign-in or the API token of the request."""
    principal = principal_of(request.scope)
    if principal.token is not None:
        return RequestAuthor(by="owner", via="token", token=principal.token.name)
    sign_in = principal.sign_in.id if principal.sign_in is not None else None
    return RequestAuthor(by="owner", via="browser", sign_in=sign_in)


async def send_history_note(services: Services, phase: Phase, who: RequestAuthor, why: str) -> None:
    with contextlib.suppress(FreeholdError):
        await services.keeper.call(NoteAuthor(phase, who, why[:MAX_REASON_LENGTH]))


@contextlib.asynccontextmanager
async def note_file_change(services: Services, request: Request, why: str) -> AsyncIterator[None]:
    """Surrounds one change of files. A change that fails is not noted as finished."""
    who = make_author(request)
    await send_history_note(services, "before", who, why)
    yield
    await send_history_note(services, "after", who, why)
