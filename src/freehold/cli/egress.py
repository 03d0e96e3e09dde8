"""`freehold egress`."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import choose_home, home_option
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.strict_json import IsoTime

if TYPE_CHECKING:
    from freehold.egress import EgressRule, EgressSettings, NetworkRequest, OwnerAnswer
    from freehold.timeline import Timeline

_MODES = {
    "deny": "hosts that no rule names are refused",
    "ask": "hosts that no rule names wait for your answer",
    "allow": "hosts that no rule names are allowed on ports 80 and 443",
}
_REACHES = {
    "manifest": "freehold.toml",
    "always": "always",
    "until_restart": "until restart",
    "once": "one connection",
    "conversation": "conversation",
}


class ListedRule(TypedDict):
    """`session` is set for a rule of one conversation."""

    verdict: Literal["allow", "deny"]
    rule: str
    reach: str
    session: str | None


class WaitingRequest(TypedDict):
    """A connection that waits for an answer. `session` is null when no session asks."""

    id: int
    target: str
    host: str
    port: int | None
    session: str | None
    who: str
    first_seen: IsoTime
    last_seen: IsoTime
    count: int


class EgressReport(TypedDict):
    mode: Literal["deny", "ask", "allow"]
    rules: list[ListedRule]
    pending: list[WaitingRequest]


class AnswerChoice(click.Choice[str]):
    """The answers to a network request. The answer `session` of 0.1.0 is refused and the new answers are named."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "session":
            self.fail(
                "'session' is now 'until-restart' (every program, as before) or 'conversation' (the session that asked)",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(EgressReport))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Show and change which hosts the computer may reach.

    Also shows the network requests that wait for your answer. Changes apply at once, also to open connections.
    Freehold does not need to run.

    \b
    Examples:
      freehold egress
      freehold egress answer 3 always
      freehold egress allow '*.example.org'
      freehold egress deny example.org:22
      freehold egress forget '*.example.org'
    """
    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return
    settings = _settings(home)
    stored, requests = _read(home)
    rules = [*settings.rules(), *stored]
    if as_json:
        from freehold.egress.service import rules_as_json

        pending = [request.as_json() for request in requests]
        echo_json({"mode": settings.mode, "rules": rules_as_json(rules), "pending": pending})
        return
    click.echo(f"mode {settings.mode}: {_MODES[settings.mode]}")
    _print_rules(rules)
    _print_requests(requests, _name_sessions(home, requests))


@command.command()
@click.argument("host", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def allow(ctx: click.Context, host: str, home: Home) -> None:
    """Add a rule that allows a host.

    Without PORT it allows ports 80 and 443.

    `*.example.org` means every name below example.org, but not example.org itself. A private address (127.0.0.1,
    10.0.0.7) is allowed only when a rule names that address.

    \b
    Examples:
      freehold egress allow api.test
      freehold egress allow 'git.example.org:22'
    """
    _add(choose_home(ctx, home), "allow", host)


@command.command()
@click.argument("host", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def deny(ctx: click.Context, host: str, home: Home) -> None:
    """Add a rule that denies a host.

    Without PORT it denies all ports. Deny rules win over allow rules.

    \b
    Example:
      freehold egress deny '*.example.org'
    """
    _add(choose_home(ctx, home), "deny", host)


@command.command()
@click.argument("request", metavar="ID")
@click.argument("answer", type=AnswerChoice(["once", "conversation", "until-restart", "always", "never"]))
@home_option
@click.pass_context
def answer(ctx: click.Context, request: str, answer: str, home: Home) -> None:
    """Answer a network request.

    \b
    once           allow one connection
    conversation   allow the session that asked, until its agent ends
    until-restart  allow every program until Freehold restarts
    always         add a rule that allows the host for every program
    never          add a rule that denies the host on all ports

    ID is the number that `freehold egress` shows. `all` means every waiting request; its only answer is never.

    \b
    Examples:
      freehold egress answer 3 always
      freehold egress answer all never
    """
    from freehold.egress import NetworkRequests

    if request == "all" and answer != "never":
        raise click.UsageError("'all' can be answered only with never. Allow hosts one at a time")
    if request != "all" and not (request.isdecimal() and len(request) < 20):
        raise click.UsageError(f"'{request}' is neither the number of a network request nor 'all'")
    with _opened(choose_home(ctx, home)) as timeline:
        requests = NetworkRequests(timeline)
        if request != "all":
            pattern = requests.answer(int(request), cast("OwnerAnswer", answer.replace("-", "_")))
            click.echo(f"{'denied' if answer == 'never' else 'allowed'} {pattern} ({answer})")
            return
        while waiting := requests.all():
            click.echo(f"denied {requests.answer(waiting[0].id, 'never')} (never)")


@command.command()
@click.argument("rule", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def forget(ctx: click.Context, rule: str, home: Home) -> None:
    """Remove a rule.

    Write the rule as `freehold egress` shows it. Rules of freehold.toml can be changed only there.

    \b
    Example:
      freehold egress forget '*.example.org'
    """
    from freehold.egress import EgressRules, parse_pattern

    with _opened(choose_home(ctx, home)) as timeline:
        for removed in EgressRules(timeline).remove(parse_pattern(rule)):
            click.echo(f"removed: {removed}")


def _add(home: Home, verdict: Literal["allow", "deny"], text: str) -> None:
    from freehold.egress import EgressPolicy, EgressRule, EgressRules, parse_pattern
    from freehold.egress.addresses import why_refused

    pattern = parse_pattern(text)
    rule = EgressRule(verdict, pattern, "always")
    with _opened(home) as timeline:
        EgressRules(timeline).add(rule)
        rules = EgressRules(timeline).all()
    click.echo(f"added: {rule}")
    port = pattern.port or 443
    decision = EgressPolicy("deny", (*_settings(home).rules(), *rules)).decide(pattern.host, port)
    if verdict == "allow" and not pattern.below and decision.verdict == "deny":
        where = "freehold.toml" if decision.rule and decision.rule.reach == "manifest" else "your rules"
        click.secho(
            f"still denied: {decision.reason} (in {where}); deny rules win over allow rules", fg="yellow", err=True
        )
    kind = why_refused(pattern.host.address) if pattern.host.address is not None else None
    if verdict == "allow" and kind:
        click.secho(
            f"warning: {pattern.host} is a {kind} address; agents can now reach private services there",
            fg="yellow",
            err=True,
        )


@contextmanager
def _opened(home: Home) -> Iterator["Timeline"]:
    from freehold.egress import ensure_tables
    from freehold.timeline import Timeline

    with Timeline(home.timeline) as timeline:
        ensure_tables(timeline)
        yield timeline


def _settings(home: Home) -> "EgressSettings":

    from freehold.egress import EgressSettings

    found = read_manifest(home).egress
    return EgressSettings(found.mode, tuple(found.allow), tuple(found.deny))


def _read(home: Home) -> tuple[list["EgressRule"], list["NetworkRequest"]]:
    from freehold.egress import EgressRules, NetworkRequests

    if not home.timeline.exists():
        return [], []
    with _opened(home) as timeline:
        return EgressRules(timeline).all(), NetworkRequests(timeline).all()


def _print_rules(rules: list["EgressRule"]) -> None:
    if not rules:
        click.echo("no rules")
    width = max((len(str(rule.pattern)) for rule in rules), default=0)
    for rule in rules:
        click.secho(f"  {rule.verdict:<6}", fg="green" if rule.verdict == "allow" else "red", nl=False)
        only = f", only session {rule.session}" if rule.session else ""
        click.echo(f" {rule.pattern!s:<{width}}  {_REACHES[rule.reach]}{only}")


def _name_sessions(home: Home, requests: list["NetworkRequest"]) -> dict[str, str]:
    """Which sessions ask, in words: title, agent and id."""
    asking = {request.session for request in requests if request.session is not None}
    if not asking:
        return {}
    from freehold.agents.sessions.store import SessionStore
    from freehold.agents.visible_text import make_visible

    found = {session: f"session {session}" for session in asking}
    with _opened(home) as timeline:
        store = SessionStore(timeline)
        store.prepare()
        for session in asking:
            with suppress(FreeholdError):  # it was deleted
                row = store.get(session)
                found[session] = f"'{make_visible(row.title, lines=False)}' ({row.agent}, session {session})"
    return found


def _print_requests(requests: list["NetworkRequest"], sessions: dict[str, str]) -> None:
    if not requests:
        click.echo("no network requests")
        return
    click.echo(f"{len(requests)} network request{'s' * (len(requests) > 1)} waiting")
    for request in requests:
        times = "once" if request.count == 1 else f"{request.count} times"
        who = sessions[request.session] if request.session else f"{request.who} (no session)"
        click.secho(f"  {request.id:>4}", bold=True, nl=False)
        click.echo(f"  {request.pattern}  requested {times} by {who}, first at {request.first_seen}")
    first = requests[0]
    conversation = "conversation|" if first.session else ""
    click.echo(f"answer with: freehold egress answer {first.id} once|{conversation}until-restart|always|never")
