"""`freehold usage`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict, cast

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import choose_home, home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.egress.models.budget import Budgets
    from freehold.egress.models.ledger import Ledger, ReportGrouping, UsageReportRow

_LIMITS = ("day_cost", "month_cost", "day_tokens", "month_tokens")


class UsageRow(TypedDict):
    """`key` has what it is grouped by. `cost` is in dollars, and null when a price is not known; `priced` is the rest."""

    key: tuple[str | None, ...]
    requests: int
    input: int
    output: int
    cached: int
    cost: float | None
    priced: float
    assumed: int
    estimated: int


class ListedBudget(TypedDict):
    """`limit` names the limit, `of` is the limit and `spent` what is used, in dollars or tokens."""

    scope: str
    limit: str
    of: float
    spent: float
    lifted: bool


class UsageReport(TypedDict):
    by: str
    rows: list[UsageRow]
    budgets: list[ListedBudget]


@click.group(invoke_without_command=True)
@click.option(
    "--by",
    type=click.Choice(["day", "model", "session", "turn"]),
    default="day",
    show_default=True,
    help="How to group the usage.",
)
@click.option("--since", metavar="DAY", default="", help="Only since this day, such as 2026-11-01.")
@home_option
@json_option(JsonOutput(UsageReport))
@click.pass_context
def command(ctx: click.Context, by: str, since: str, home: Home, as_json: bool) -> None:
    """Show the usage and cost of models, and the budgets.

    \b
    Examples:
      freehold usage
      freehold usage --by model --since 2026-11-01
      freehold usage budget '*' --day-cost 5
      freehold usage lift
    """
    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return
    from freehold.egress.models.budget_state import list_budget_states

    with _opened(home) as ledger:
        rows = ledger.report(cast("ReportGrouping", by), since=since, limit=100)
        states = list_budget_states(_budgets(home, ledger))
    if as_json:
        budgets = [
            ListedBudget(
                scope=state.scope, limit=state.limit_name, of=state.limit, spent=state.spent, lifted=state.lifted
            )
            for state in states
        ]
        echo_json(UsageReport(by=by, rows=[_describe_row(row) for row in rows], budgets=budgets))
        return
    if not rows:
        click.echo("no model requests yet")
    width = max((len(_name(row)) for row in rows), default=0)
    for row in rows:
        tokens = row.usage.tokens
        line = f"  {_name(row):<{width}}  {row.usage.requests:>6} requests  {tokens.input:>10,} in  {tokens.output:>9,} out"
        click.echo(f"{line}  {_cost(row)}")
    for state in states:
        share = state.spent / state.limit
        colour = "red" if share >= 1 else "yellow" if share >= 0.8 else None
        spent = (
            f"{state.spent:.2f} of {state.limit:g} dollars"
            if state.limit_name.endswith("cost")
            else f"{state.spent:,.0f} of {state.limit:,.0f} tokens"
        )
        note = (
            ", lifted"
            if state.lifted
            else f", and {state.unpriced} requests of unknown price"
            if state.unpriced and state.limit_name.endswith("cost")
            else f", of which {state.assumed} requests at the dearest price of their provider"
            if state.assumed and state.limit_name.endswith("cost")
            else ""
        )
        click.secho(f"  budget {state.scope} {state.limit_name} {state.period}: {spent} ({share:.0%}){note}", fg=colour)


@command.command()
@click.argument("scope", default="*")
@click.option("--day-cost", type=float, help="US dollars a day.")
@click.option("--month-cost", type=float, help="US dollars a month.")
@click.option("--day-tokens", type=int, help="Tokens a day, in and out.")
@click.option("--month-tokens", type=int, help="Tokens a month, in and out.")
@home_option
@click.pass_context
def budget(
    ctx: click.Context,
    scope: str,
    day_cost: float | None,
    month_cost: float | None,
    day_tokens: int | None,
    month_tokens: int | None,
    home: Home,
) -> None:
    """Set a budget for one provider, or for all (`*`).

    It replaces the budget in freehold.toml. Without a limit, the budget in freehold.toml applies again.

    \b
    Examples:
      freehold usage budget '*' --day-cost 5 --month-cost 50
      freehold usage budget openai --day-tokens 2000000
      freehold usage budget openai
    """
    from freehold.egress.models.budget import BudgetLimits

    limits = BudgetLimits(day_cost, month_cost, day_tokens, month_tokens)
    with _opened(choose_home(ctx, home)) as ledger:
        _check_scope(choose_home(ctx, home), scope)
        ledger.set_budget(scope, limits if limits.named() else None)
    click.echo("budget set" if limits.named() else "the budget in freehold.toml applies again")


@command.command()
@click.argument("scope", default="")
@click.argument("limit", default="", type=click.Choice(["", *_LIMITS]))
@home_option
@click.pass_context
def lift(ctx: click.Context, scope: str, limit: str, home: Home) -> None:
    """Ignore a limit until the end of its day or month.

    Without arguments, this lifts every limit that has been reached.

    \b
    Examples:
      freehold usage lift
      freehold usage lift openai day_cost
    """
    from datetime import UTC, datetime

    from freehold.egress.models.budget_state import list_budget_states

    now = datetime.now(UTC)
    lifted = 0
    with _opened(choose_home(ctx, home)) as ledger:
        refused = ledger.reached()
        for state in list_budget_states(_budgets(choose_home(ctx, home), ledger), now):
            full = state.spent >= state.limit or (state.scope, state.limit_name, state.period) in refused
            wanted = full if not scope else state.scope == scope and limit in ("", state.limit_name)
            if wanted and not state.lifted:
                lifted += 1
                ledger.lift(state.scope, state.limit_name, now)
                click.echo(f"lifted {state.limit_name} of {state.scope} for {state.period}")
    if not lifted:
        click.echo("No limit has been reached, or all are already lifted.")


@contextmanager
def _opened(home: Home) -> Iterator["Ledger"]:
    from freehold.egress.models.ledger import Ledger, ensure_tables
    from freehold.home import ensure_private_folder
    from freehold.timeline import Timeline

    ensure_private_folder(home.root)
    with Timeline(home.timeline) as timeline:
        ensure_tables(timeline)
        yield Ledger(timeline)


def _budgets(home: Home, ledger: "Ledger") -> "Budgets":
    from datetime import UTC, datetime

    from freehold.egress.models.budget import ALL, Budgets
    from freehold.egress.models.provider import read_limits, read_providers

    manifest = read_manifest(home)
    budgets = Budgets()
    manifest_limits = {name: provider.limits for name, provider in read_providers(manifest.models).items()}
    budgets.limits = manifest_limits | {ALL: read_limits(manifest.budget)} | ledger.budgets()
    budgets.lifted = ledger.lifted()
    for (scope, period), spent in ledger.spent(datetime.now(UTC)).items():
        budgets.load(scope, period, spent)
    return budgets


def _check_scope(home: Home, scope: str) -> None:
    from freehold.errors import FreeholdError

    names = list(read_manifest(home).models)
    if scope != "*" and scope not in names:
        raise FreeholdError(
            "models.not-found",
            f"There is no model provider {scope!a:.80}",
            hint=f"freehold.toml has: {', '.join(names) or 'none'}; '*' means all",
        )


def _name(row: "UsageReportRow") -> str:
    return " ".join(part or "-" for part in row.key)


def _cost(row: "UsageReportRow") -> str:
    if row.usage.cost is not None:
        missing = (
            f" ({row.usage.assumed} without a price, at the dearest of their provider)" if row.usage.assumed else ""
        )
        return f"{row.usage.cost:.4f} dollars{missing}"
    return f"{row.usage.priced:.4f} dollars and unknown" if row.usage.priced else "price unknown"


def _describe_row(row: "UsageReportRow") -> UsageRow:
    tokens = row.usage.tokens
    return {
        "key": row.key,
        "requests": row.usage.requests,
        "input": tokens.input,
        "output": tokens.output,
        "cached": tokens.cached,
        "cost": row.usage.cost,
        "priced": row.usage.priced,
        "assumed": row.usage.assumed,
        "estimated": row.usage.estimated,
    }
