"""Models, secrets, usage, budgets and the kill switch."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field

from freehold.egress.models import BudgetLimits, ModelUsage, Provider
from freehold.egress.models.budget import LimitName
from freehold.egress.models.budget_state import BudgetState, list_budget_states
from freehold.egress.models.connect_help import connect_help
from freehold.egress.models.ledger import ReportGrouping
from freehold.egress.models.provider_check import ProviderCheck
from freehold.egress.models.provider_setup import default_provider
from freehold.egress.vault import SecretInfo
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, RequestBody, UrlName
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post, put
from freehold.gateway.services import Services
from freehold.manifest.secret_text import parse_reference
from freehold.manifest.sections.models import SUBSCRIPTIONS

Amount = Annotated[float, Field(gt=0, lt=1e9)]
Count = Annotated[int, Field(gt=0, lt=10**15)]


class ModelProviderBody(BaseModel):
    """A provider of the manifest. `problem` says why it cannot be used now.

    `key` is the manifest's reference to its key (`secret:NAME` or `env:NAME`), never the key; null when it needs none.
    `default` marks the provider of sessions that name none.
    """

    name: str
    kind: Literal["openai", "anthropic", "gemini", "openai-compatible"]
    address: str
    model: str | None
    inside: str
    key: str | None
    auth: Literal["key", "claude-code", "codex"]
    agent: str | None = Field(description="The only agent that may use it: a subscription of its vendor. Null for all.")
    default: bool
    problem: str | None


class OfferedModelBody(BaseModel):
    """A model of a provider. Prices are US dollars for a million tokens; null where they are not known."""

    name: str
    input_price: float | None
    output_price: float | None
    window: int | None = Field(description="How many tokens it takes at once; null when that is not known.")


class ModelTrialBody(BaseModel):
    """The result of asking a provider for its list of models with its key, which is free.

    `suggested` is the model for an owner who chooses none; null when there is none for text.
    `said` is what the provider itself said about a failure; empty when it said nothing.
    """

    name: str
    ok: bool
    status: int
    milliseconds: int
    words: str
    said: str
    models: list[str]
    offered: list[OfferedModelBody]
    suggested: str | None


class ModelsStateBody(BaseModel):
    """The providers. Without any, `help` says how to connect one.

    `unapplied` says why the manifest was changed and is not in force; null when it is.
    """

    models: list[ModelProviderBody]
    help: str | None
    stopped: bool
    unapplied: str | None


class UsageLineBody(BaseModel):
    """Usage. `cost` is null when any price is unknown; `priced` is the cost of the requests with a known price.

    `assumed` requests have no price in the table and count as the dearest of their provider. For `estimated` requests the
    provider reported no tokens; one that was broken off counts with the most that it allowed.
    """

    key: list[str | None]
    requests: int
    input: int
    output: int
    cached: int
    cost: float | None
    priced: float
    assumed: int
    estimated: int


class UsageReportBody(BaseModel):
    """Rows grouped by day; day, provider and model; provider and model; provider; session; or session and turn. Newest first."""

    by: Literal["day", "day_model", "model", "provider", "session", "turn"]
    rows: list[UsageLineBody]


class BudgetStateBody(BaseModel):
    """One limit of a provider or of all (`*`). `unpriced` requests have an unknown price and are not counted in money;
    `assumed` ones count as the dearest of their provider.

    `reached`: requests were refused or cut for it, and will be until it is lifted or raised.
    """

    scope: str
    limit: Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]
    period: str
    of: float
    spent: float
    unpriced: int
    assumed: int
    lifted: bool
    reached: bool


class BudgetsStateBody(BaseModel):
    budgets: list[BudgetStateBody]


class SetBudgetBody(RequestBody):
    """The limits of a provider or of all (`*`), in place of the manifest's. One that is left out is not limited."""

    scope: str = Field(min_length=1, max_length=100)
    day_cost: Amount | None = None
    month_cost: Amount | None = None
    day_tokens: Count | None = None
    month_tokens: Count | None = None


class LiftBudgetBody(RequestBody):
    """Ignores a limit until the day or month is over."""

    scope: str = Field(min_length=1, max_length=100)
    limit: Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]


class StopStateBody(BaseModel):
    """Whether the kill switch is on, since when, who pulled it and why.

    `summary` says what it ended, what keeps running and what it could not end. None while it is at work.
    """

    stopped: bool
    at: str | None
    who: str | None
    why: str | None
    summary: str | None


class StopAgentsBody(RequestBody):
    why: str = Field(default="", max_length=500)


class SecretInfoBody(BaseModel):
    """A secret by its name. Its value is never shown."""

    name: str
    set_at: datetime
    used_at: datetime | None


class SetSecretBody(RequestBody):
    value: str = Field(min_length=1, max_length=64 * 1024)


class SecretNameBody(BaseModel):
    name: str


class ModelRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._models = context.services.models
        self._follower = context.manifest_follower

    @get("/v1/models", scope="read")
    async def list_models(self) -> ModelsStateBody:
        """List the model providers that agents can use."""
        await self._models.wait_ready()
        providers = self._providers()  # the manifest may change while the thread looks at them
        first, problem = default_provider(self._services.manifest), self._follower.problem
        problems = await asyncio.to_thread(lambda: [self._models.problem_with(each) for each in providers])
        rows = [
            _model_row(each, found, default=each.name == first) for each, found in zip(providers, problems, strict=True)
        ]
        return ModelsStateBody(
            models=rows,
            help=None if rows else connect_help(),
            stopped=self._models.stopped is not None,
            unapplied=None if problem is None else problem.message,
        )

    def _providers(self) -> list[Provider]:
        return list(self._models.providers.values())

    @post("/v1/models/{name}/test", scope="admin")
    async def test_model(self, name: UrlName) -> ModelTrialBody:
        """Check that a provider can be reached and accepts its key."""
        await self._models.wait_ready()
        return trial_row(name, await self._models.check_provider(name))

    @get("/v1/usage", scope="read")
    async def read_usage(
        self,
        by: ReportGrouping = "day",
        since: Annotated[str, Query(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = "",
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 100,
    ) -> UsageReportBody:
        """Usage and cost of models, from the day `since` on."""
        await self._models.wait_ready()
        rows = await asyncio.to_thread(lambda: self._models.ledger.report(by, since=since, limit=limit))
        return UsageReportBody(by=by, rows=[_usage_row(row.key, row.usage) for row in rows])

    async def _budgets(self) -> BudgetsStateBody:
        reached = await asyncio.to_thread(self._models.ledger.reached)
        rows = list_budget_states(self._models.budgets)
        return BudgetsStateBody(
            budgets=[_budget_row(each, (each.scope, each.limit_name, each.period) in reached) for each in rows]
        )

    @get("/v1/budgets", scope="admin")
    async def read_budgets(self) -> BudgetsStateBody:
        """Every limit in force with the spending so far."""
        await self._models.wait_ready()
        return await self._budgets()

    @put("/v1/budgets", scope="admin")
    async def set_budget(self, body: SetBudgetBody, request: Request) -> BudgetsStateBody:
        """Set the limits of a provider or of all. Without any limit, those of the manifest apply again."""
        limits = BudgetLimits(body.day_cost, body.month_cost, body.day_tokens, body.month_tokens)
        who = principal_of(request.scope).who
        await self._models.set_budget(body.scope, limits if limits.named() else None, who=who)
        return await self._budgets()

    @post("/v1/budgets/lift", scope="admin")
    async def lift_budget(self, body: LiftBudgetBody, request: Request) -> BudgetsStateBody:
        """Ignore a limit until its day or month is over."""
        what: LimitName = body.limit
        await self._models.lift(body.scope, what, who=principal_of(request.scope).who)
        return await self._budgets()

    def _stop_state(self) -> StopStateBody:
        stopped = self._models.stopped
        if stopped is None:
            return StopStateBody(stopped=False, at=None, who=None, why=None, summary=None)
        summary = self._services.computer_access.stop_report
        return StopStateBody(stopped=True, at=stopped.at, who=stopped.who, why=stopped.why, summary=summary)

    @get("/v1/stop", scope="read")
    async def read_stop(self) -> StopStateBody:
        """Whether the kill switch is on."""
        await self._models.read_stop()
        return self._stop_state()

    @post("/v1/stop", scope="prompt")
    async def stop_everything(self, body: StopAgentsBody, request: Request) -> StopStateBody:
        """The kill switch: end every agent and refuse model requests until it is lifted."""
        await self._models.stop(who=principal_of(request.scope).who, why=body.why)
        return self._stop_state()

    @post("/v1/stop/lift", scope="admin")
    async def lift_stop(self, request: Request) -> StopStateBody:
        """Lift the kill switch."""
        await self._models.resume(who=principal_of(request.scope).who)
        return self._stop_state()


class SecretRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/secrets", scope="admin")
    async def list_secrets(self) -> list[SecretInfoBody]:
        """The names of the secrets in the vault, when each was set and last used."""
        return [_secret_row(kept) for kept in await asyncio.to_thread(self._services.vault.list)]

    @put("/v1/secrets/{name}", scope="admin")
    async def set_secret(self, name: UrlName, body: SetSecretBody, request: Request) -> SecretNameBody:
        """Store a secret. Its value is never shown again."""
        await asyncio.to_thread(self._services.vault.set, name, body.value)
        await _record(self._services, request, "secret.set", name)
        return SecretNameBody(name=name)

    @delete("/v1/secrets/{name}", scope="admin")
    async def remove_secret(self, name: UrlName, request: Request) -> SecretNameBody:
        """Remove a secret."""
        await asyncio.to_thread(self._services.vault.remove, name)
        await _record(self._services, request, "secret.removed", name)
        return SecretNameBody(name=name)


async def _record(services: Services, request: Request, kind: str, name: str) -> None:
    await asyncio.to_thread(services.timeline.append, kind, {"name": name}, who=principal_of(request.scope).who)


def trial_row(name: str, found: ProviderCheck) -> ModelTrialBody:
    return ModelTrialBody(
        name=name,
        ok=found.ok,
        status=found.status,
        milliseconds=found.milliseconds,
        words=found.message,
        said=found.said,
        models=list(found.models),
        offered=[OfferedModelBody.model_validate(asdict(each)) for each in found.offered],
        suggested=found.suggested,
    )


def _model_row(provider: Provider, problem: FreeholdError | None, *, default: bool) -> ModelProviderBody:
    terms = SUBSCRIPTIONS.get(provider.auth)
    return ModelProviderBody(
        name=provider.name,
        kind=provider.kind,
        address=provider.url,
        model=provider.model,
        inside=provider.inside,
        # A value that is not a reference may be a key that the owner wrote here by mistake.
        key=provider.key if parse_reference(provider.key or "") else None,
        auth=provider.auth,
        agent=terms.agent if terms is not None else None,
        default=default,
        problem=None if problem is None else f"{problem.message}. {problem.hint}",
    )


def _usage_row(key: tuple[str | None, ...], usage: ModelUsage) -> UsageLineBody:
    tokens = usage.tokens
    return UsageLineBody(
        key=list(key),
        requests=usage.requests,
        input=tokens.input,
        output=tokens.output,
        cached=tokens.cached,
        cost=usage.cost,
        priced=usage.priced,
        assumed=usage.assumed,
        estimated=usage.estimated,
    )


def _budget_row(standing: BudgetState, reached: bool) -> BudgetStateBody:
    return BudgetStateBody(
        scope=standing.scope,
        limit=standing.limit_name,
        period=standing.period,
        of=standing.limit,
        spent=standing.spent,
        unpriced=standing.unpriced,
        assumed=standing.assumed,
        lifted=standing.lifted,
        reached=reached and not standing.lifted,
    )


def _secret_row(kept: SecretInfo) -> SecretInfoBody:
    return SecretInfoBody(
        name=kept.name, set_at=to_moment(kept.set_at), used_at=None if kept.used_at is None else to_moment(kept.used_at)
    )
