"""Connect and disconnect model providers while Freehold runs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.egress.models.discovery import FoundProvider, find_environment_keys, find_local_servers
from freehold.egress.models.known_providers import KNOWN_PROVIDERS, KnownProvider
from freehold.egress.models.provider_setup import (
    ProviderDraft,
    choose_default_provider,
    connect_provider,
    disconnect_provider,
)
from freehold.egress.models.upstream import UpstreamPool
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlName
from freehold.gateway.principal import principal_of
from freehold.gateway.routes.models import ModelTrialBody, trial_row
from freehold.gateway.routing import delete, get, post, put
from freehold.manifest.overlay import OVERLAY_NAME
from freehold.observe.secrets import Secret


class KnownProviderBody(BaseModel):
    """A provider that Freehold knows. `address` is null when you have to say it.

    `local`: a program of your own on this machine, without a key. `agent`: the only agent that may use it.
    """

    name: str
    title: str
    kind: Literal["openai", "anthropic", "gemini", "openai-compatible"]
    auth: Literal["key", "claude-code", "codex"]
    address: str | None
    key_page: str | None
    local: bool
    agent: str | None
    note: str


class FoundProviderBody(BaseModel):
    """A provider that could be connected at once. `variable` has its key; null when it needs none. It is not used yet."""

    name: str
    title: str
    variable: str | None
    address: str | None
    models: list[str]
    words: str


class ProviderOffersBody(BaseModel):
    known: list[KnownProviderBody]
    found: list[FoundProviderBody]


class ConnectModelBody(RequestBody):
    """A provider. Its key is stored in the vault and never shown again.

    Without a key, one that is connected under this name keeps the key it has, at the same address only.
    """

    kind: Literal["openai", "anthropic", "gemini", "openai-compatible"]
    base_url: str | None = Field(default=None, max_length=2000, description="Needed for openai-compatible only.")
    key: str | None = Field(default=None, min_length=1, max_length=64 * 1024)
    variable: str | None = Field(
        default=None, max_length=200, description="Take the key from this variable, which `found` names."
    )
    auth: Literal["key", "claude-code", "codex"] = "key"
    model: str | None = Field(default=None, max_length=200, description="The model to use when none was chosen.")
    default: bool = Field(default=False, description="Agents that name no provider use this one.")


class ModelChangedBody(BaseModel):
    """What was changed. `file` is the file that has it now: the manifest, or its overlay when it cannot be written."""

    name: str
    file: str
    overlay: bool


class ProviderRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._models = context.services.models
        self._follower = context.manifest_follower
        self._turn = asyncio.Lock()

    @get("/v1/model-offers", scope="admin")
    async def list_model_offers(self) -> ProviderOffersBody:
        """The providers that Freehold knows, and those that it found on this machine. None is used by this."""
        await self._models.wait_ready()
        connected = list(self._models.providers.values())
        servers = await find_local_servers(connected, UpstreamPool())
        found = [*find_environment_keys(os.environ, connected), *servers]
        return ProviderOffersBody(
            known=[_known_row(known) for known in KNOWN_PROVIDERS], found=[_found_row(each) for each in found]
        )

    @post("/v1/models/{name}/try", scope="admin")
    async def try_model(self, name: UrlName, body: ConnectModelBody) -> ModelTrialBody:
        """Ask a provider for its list of models, and its model for one word, before it is connected. Nothing is stored."""
        await self._models.wait_ready()
        draft = _read_draft(name, body)
        key = draft.key_to_send()
        if key is None and name in self._models.providers:
            # The key that it has is sent to the address that it has, and to no other.
            return trial_row(name, await self._models.check_provider(name))
        return trial_row(name, await self._models.try_provider(draft.as_provider(), key))

    @put("/v1/models/{name}", scope="admin")
    async def connect_model(self, name: UrlName, body: ConnectModelBody, request: Request) -> ModelChangedBody:
        """Connect a provider, or change one. It takes effect at once."""
        draft = _read_draft(name, body)
        services = self._services

        def change() -> Path:
            return connect_provider(services.home.manifest, services.manifest, services.vault, draft, os.environ)

        return await self._change(request, "models.provider_connected", name, change)

    @delete("/v1/models/{name}", scope="admin")
    async def disconnect_model(self, name: UrlName, request: Request) -> ModelChangedBody:
        """Disconnect a provider. Its key is removed from the vault when nothing else in the manifest uses it."""
        services = self._services

        def change() -> Path:
            return disconnect_provider(services.home.manifest, services.manifest, services.vault, name, os.environ)

        return await self._change(request, "models.provider_removed", name, change)

    @post("/v1/models/{name}/default", scope="admin")
    async def choose_default_model(self, name: UrlName, request: Request) -> ModelChangedBody:
        """Let agents that name no provider use this one."""
        services = self._services

        def change() -> Path:
            return choose_default_provider(services.home.manifest, services.manifest, name, os.environ)

        return await self._change(request, "models.provider_default", name, change)

    async def _change(self, request: Request, kind: str, name: str, change: Callable[[], Path]) -> ModelChangedBody:
        who = principal_of(request.scope).who
        async with self._turn:
            await self._models.wait_ready()
            file = await asyncio.to_thread(change)
            await self._follower.apply()
        data = {"name": name, "file": file.name}
        await asyncio.to_thread(self._services.timeline.append, kind, data, who=who)
        return ModelChangedBody(name=name, file=str(file), overlay=file.name == OVERLAY_NAME)


def _read_draft(name: str, body: ConnectModelBody) -> ProviderDraft:
    key = body.key
    if key is None and body.variable is not None:
        key = _read_variable(body, body.variable)
    return ProviderDraft(
        name,
        body.kind,
        body.base_url,
        None if key is None else Secret(key.strip()),
        body.model,
        body.auth,
        body.default,
    )


def _read_variable(body: ConnectModelBody, variable: str) -> str:
    """Only the usual variable of a known provider, and only for its own address: no other secret can be sent away."""
    for known in KNOWN_PROVIDERS:
        same = (
            known.kind == body.kind and known.auth == body.auth and (body.base_url or known.base_url) == known.base_url
        )
        if variable in known.variables and same and os.environ.get(variable):
            return os.environ[variable]
    raise FreeholdError(
        "models.bad-choice",
        f"{variable!a:.80} is not a variable that has the key of this provider",
        hint="GET /v1/model-offers lists those that were found",
    )


def _known_row(known: KnownProvider) -> KnownProviderBody:
    return KnownProviderBody(
        name=known.name,
        title=known.title,
        kind=known.kind,
        auth=known.auth,
        address=known.base_url,
        key_page=known.key_page,
        local=known.is_local,
        agent=known.agent,
        note=known.note,
    )


def _found_row(found: FoundProvider) -> FoundProviderBody:
    return FoundProviderBody(
        name=found.known.name,
        title=found.known.title,
        variable=found.variable,
        address=found.known.base_url,
        models=list(found.models),
        words=found.words,
    )
