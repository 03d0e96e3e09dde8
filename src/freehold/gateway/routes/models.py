"""Models, their keys, what they cost, and the switch that stops everything."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import FastAPI, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.egress.models import Limits, Provider, Stopped, Usage
from freehold.egress.models.budget import What
from freehold.egress.models.connecting import how_to_connect
from freehold.egress.models.ledger import By
from freehold.egress.models.standing import Standing, standings
from freehold.egress.vault import Kept
from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.manifest.secrecy import parse_reference

Amount = Annotated[float, Field(gt=0, lt=1e9)]
Count = Annotated[int, Field(gt=0, lt=10**15)]


class ModelRow(BaseModel):
    """A provider of the manifest. `problem` says why it cannot be asked right now.

    `key` is the manifest's word for its key (`secret:NAME` or `env:NAME`), never the key; null when it wants none.
    `default` is the one that a session uses which names none.
    """

    name: str
    kind: Literal["openai", "anthropic", "gemini", "openai-compatible"]
    address: str
    model: str | None
    inside: str
    key: str | None
    default: bool
    problem: str | None


class ModelTrial(BaseModel):
    """What a provider answered when it was asked for its models, with its key: what costs nothing."""

    name: str
    ok: bool
    status: int
    milliseconds: int
    words: str
    models: list[str]


class ModelsState(BaseModel):
    """The providers; without any, how to connect one."""

    models: list[ModelRow]
    help: str | None
    stopped: bool


class UsageRow(BaseModel):
    """What was used; `cost` is null when a price among it is unknown, and `priced` what the rest cost."""

    key: list[str | None]
    requests: int
    input: int
    output: int
    cached: int
    cost: float | None
    priced: float


class UsageReport(BaseModel):
    """Rows by day, by day, provider and model, by provider and model, session, or session and turn; the newest first."""

    by: Literal["day", "day_model", "model", "provider", "session", "turn"]
    rows: list[UsageRow]


class BudgetRow(BaseModel):
    """One limit: of a provider, or of all of them (`*`). `unpriced` requests have no known price and count as nothing.

    `reached`: something was refused or cut for it, and will be again until it is lifted or raised.
    """

    scope: str
    limit: Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]
    period: str
    of: float
    spent: float
    unpriced: int
    lifted: bool
    reached: bool


class BudgetsState(BaseModel):
    budgets: list[BudgetRow]


class SetBudget(BaseModel):
    """The limits of a provider or of all (`*`), in place of the manifest's; what is left out has no bound."""

    model_config = ConfigDict(extra="forbid")
    scope: str = Field(min_length=1, max_length=100)
    day_cost: Amount | None = None
    month_cost: Amount | None = None
    day_tokens: Count | None = None
    month_tokens: Count | None = None


class LiftBudget(BaseModel):
    """Lets a limit rest until the day or month is over."""

    model_config = ConfigDict(extra="forbid")
    scope: str = Field(min_length=1, max_length=100)
    limit: Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]


class StopState(BaseModel):
    """Whether the owner has stopped everything."""

    stopped: bool
    at: str | None
    who: str | None
    why: str | None


class Stop(BaseModel):
    model_config = ConfigDict(extra="forbid")
    why: str = Field(default="", max_length=500)


class SecretRow(BaseModel):
    """A secret by its name. Its value is shown to nobody."""

    name: str
    set_at: float
    used_at: float | None


class SetSecret(BaseModel):
    model_config = ConfigDict(extra="forbid")
    value: str = Field(min_length=1, max_length=64 * 1024)


class SecretNamed(BaseModel):
    name: str


def add_models(app: FastAPI, house: House) -> None:
    models = house.sealed.models

    @app.get("/v1/models")
    @needs("read")
    async def list_models() -> ModelsState:
        """The model providers that agents may use."""
        await models.ready()
        problems = await asyncio.to_thread(lambda: {each.name: models.problem_with(each) for each in providers()})
        first = next(iter(models.providers), None)
        rows = [_model_row(each, problems[each.name], default=each.name == first) for each in providers()]
        return ModelsState(models=rows, help=None if rows else how_to_connect(), stopped=models.stopped is not None)

    def providers() -> list[Provider]:
        return list(models.providers.values())

    @app.post("/v1/models/{name}/test")
    @needs("admin")
    async def try_model(name: Annotated[str, Path(max_length=100)]) -> ModelTrial:
        """Ask a provider for its models: whether it is reached and takes its key."""
        await models.ready()
        trial = await models.try_out(name)
        return ModelTrial(name=name, **asdict(trial))

    @app.get("/v1/usage")
    @needs("read")
    async def read_usage(
        by: By = "day",
        since: Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> UsageReport:
        """What models were asked and what it cost, from the day `since` on."""
        await models.ready()
        rows = await asyncio.to_thread(lambda: models.ledger.report(by, since=since, limit=limit))
        return UsageReport(by=by, rows=[_usage_row(row.key, row.usage) for row in rows])

    async def budgets() -> BudgetsState:
        reached = await asyncio.to_thread(models.ledger.reached)
        rows = standings(models.budgets)
        return BudgetsState(
            budgets=[_budget_row(each, (each.scope, each.what, each.period) in reached) for each in rows]
        )

    @app.get("/v1/budgets")
    @needs("admin")
    async def read_budgets() -> BudgetsState:
        """Every limit in force and what was spent of it."""
        await models.ready()
        return await budgets()

    @app.put("/v1/budgets")
    @needs("admin")
    async def set_budget(body: SetBudget, request: Request) -> BudgetsState:
        """Set the limits of a provider or of all; with no limit at all, the manifest's count again."""
        limits = Limits(body.day_cost, body.month_cost, body.day_tokens, body.month_tokens)
        who = principal_of(request.scope).who
        await models.set_budget(body.scope, limits if limits.named() else None, who=who)
        return await budgets()

    @app.post("/v1/budgets/lift")
    @needs("admin")
    async def lift_budget(body: LiftBudget, request: Request) -> BudgetsState:
        """Go on although a budget is reached, until its day or month is over."""
        what: What = body.limit
        await models.lift(body.scope, what, who=principal_of(request.scope).who)
        return await budgets()

    @app.get("/v1/stop")
    @needs("read")
    async def read_stop() -> StopState:
        """Whether everything is stopped."""
        await models.ready()
        return _stop_state(models.stopped)

    @app.post("/v1/stop")
    @needs("prompt")
    async def stop_everything(body: Stop, request: Request) -> StopState:
        """The kill switch: every agent ends and no model is asked until it is lifted."""
        await models.stop(who=principal_of(request.scope).who, why=body.why)
        return _stop_state(models.stopped)

    @app.post("/v1/stop/lift")
    @needs("admin")
    async def lift_stop(request: Request) -> StopState:
        """Let agents and models work again."""
        await models.resume(who=principal_of(request.scope).who)
        return _stop_state(models.stopped)


def add_secrets(app: FastAPI, house: House) -> None:
    vault = house.sealed.vault

    @app.get("/v1/secrets")
    @needs("admin")
    async def list_secrets() -> list[SecretRow]:
        """The names of the secrets in the vault, when each was set and last used."""
        return [_secret_row(kept) for kept in await asyncio.to_thread(vault.list)]

    @app.put("/v1/secrets/{name}")
    @needs("admin")
    async def set_secret(name: str, body: SetSecret, request: Request) -> SecretNamed:
        """Keep a secret; from here on it is only ever named."""
        await asyncio.to_thread(vault.put, name, body.value)
        await _note(house, request, "secret.set", name)
        return SecretNamed(name=name)

    @app.delete("/v1/secrets/{name}")
    @needs("admin")
    async def remove_secret(name: str, request: Request) -> SecretNamed:
        """Forget a secret."""
        await asyncio.to_thread(vault.remove, name)
        await _note(house, request, "secret.removed", name)
        return SecretNamed(name=name)


async def _note(house: House, request: Request, kind: str, name: str) -> None:
    await asyncio.to_thread(house.timeline.append, kind, {"name": name}, who=principal_of(request.scope).who)


def _model_row(provider: Provider, problem: FreeholdError | None, *, default: bool) -> ModelRow:
    return ModelRow(
        name=provider.name,
        kind=provider.kind,
        address=provider.url,
        model=provider.model,
        inside=provider.inside,
        # What is no reference may be a key that somebody wrote where it does not belong.
        key=provider.key if parse_reference(provider.key or "") else None,
        default=default,
        problem=None if problem is None else f"{problem.message}. {problem.hint}",
    )


def _usage_row(key: tuple[str | None, ...], usage: Usage) -> UsageRow:
    tokens = usage.tokens
    return UsageRow(
        key=list(key),
        requests=usage.requests,
        input=tokens.input,
        output=tokens.output,
        cached=tokens.cached,
        cost=usage.cost,
        priced=usage.priced,
    )


def _budget_row(standing: Standing, reached: bool) -> BudgetRow:
    return BudgetRow(
        scope=standing.scope,
        limit=standing.what,
        period=standing.period,
        of=standing.limit,
        spent=standing.spent,
        unpriced=standing.unpriced,
        lifted=standing.lifted,
        reached=reached and not standing.lifted,
    )


def _stop_state(stopped: Stopped | None) -> StopState:
    if stopped is None:
        return StopState(stopped=False, at=None, who=None, why=None)
    return StopState(stopped=True, at=stopped.at, who=stopped.who, why=stopped.why)


def _secret_row(kept: Kept) -> SecretRow:
    return SecretRow(name=kept.name, set_at=kept.set_at, used_at=kept.used_at)
