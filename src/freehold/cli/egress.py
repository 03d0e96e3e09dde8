"""`freehold egress`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.egress import EgressSettings, Question, Rule
    from freehold.timeline import Timeline

_MODES = {
    "deny": "what no rule names is refused",
    "ask": "what no rule names waits for your answer",
    "allow": "what no rule names is let through on ports 80 and 443",
}


@click.group(invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Show what may leave the computer and what waits for your answer, or change it.

    Changes apply at once, to connections that are open too. Needs nothing to be running.

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
    rules, questions = _state(home)
    everything = [*settings.rules(), *rules]
    if as_json:
        from freehold.egress.service import rules_as_json

        pending = [question.as_json() for question in questions]
        click.echo(json.dumps({"mode": settings.mode, "rules": rules_as_json(everything), "pending": pending}))
        return
    click.echo(f"mode {settings.mode}: {_MODES[settings.mode]}")
    _print_rules(everything)
    _print_questions(questions)


@command.command()
@click.argument("host", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def allow(ctx: click.Context, host: str, home: Home) -> None:
    """Let the computer talk to HOST, on ports 80 and 443 or on the one named.

    `*.example.org` means every name below example.org, and not example.org itself. An address that is not public
    (127.0.0.1, 10.0.0.7) is let through only where it is named itself.

    \b
    Examples:
      freehold egress allow api.test
      freehold egress allow 'git.example.org:22'
    """
    _add(_home(ctx, home), "allow", host)


@command.command()
@click.argument("host", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def deny(ctx: click.Context, host: str, home: Home) -> None:
    """Never let the computer talk to HOST, on any port or on the one named. Wins over every allow.

    \b
    Example:
      freehold egress deny '*.example.org'
    """
    _add(_home(ctx, home), "deny", host)


@command.command()
@click.argument("question", metavar="ID")
@click.argument("answer", type=click.Choice(["once", "session", "always", "never"]))
@home_option
@click.pass_context
def answer(
    ctx: click.Context, question: str, answer: Literal["once", "session", "always", "never"], home: Home
) -> None:
    """Answer a question that waits: once (one connection), session (until Freehold restarts), always or never.

    ID is the number shown by `freehold egress`; `all` answers every question, with never only.

    \b
    Examples:
      freehold egress answer 3 always
      freehold egress answer all never
    """
    from freehold.egress import Questions

    if question == "all" and answer != "never":
        raise click.UsageError("'all' can only be answered with never: a yes is given to one host at a time")
    if question != "all" and not (question.isdecimal() and len(question) < 20):
        raise click.UsageError(f"'{question}' is not the number of a question, nor 'all'")
    with _opened(_home(ctx, home)) as timeline:
        questions = Questions(timeline)
        if question != "all":
            pattern = questions.answer(int(question), answer)
            click.echo(f"{'denied' if answer == 'never' else 'allowed'} {pattern} ({answer})")
            return
        while waiting := questions.all():
            click.echo(f"denied {questions.answer(waiting[0].id, 'never')} (never)")


@command.command()
@click.argument("rule", metavar="HOST[:PORT]")
@home_option
@click.pass_context
def forget(ctx: click.Context, rule: str, home: Home) -> None:
    """Take back a rule of yours, as `freehold egress` shows it. Rules of the manifest are changed there.

    \b
    Example:
      freehold egress forget '*.example.org'
    """
    from freehold.egress import Rules, parse_pattern

    with _opened(_home(ctx, home)) as timeline:
        for gone in Rules(timeline).forget(parse_pattern(rule)):
            click.echo(f"forgotten: {gone}")


def _home(ctx: click.Context, home: Home) -> Home:
    """`--home` may stand before or after the verb."""
    outer = ctx.obj
    given = ctx.get_parameter_source("home") is not click.core.ParameterSource.DEFAULT
    return home if given or not isinstance(outer, Home) else outer


def _add(home: Home, verdict: Literal["allow", "deny"], text: str) -> None:
    from freehold.egress import Policy, Rule, Rules, parse_pattern
    from freehold.egress.addresses import why_refused

    pattern = parse_pattern(text)
    rule = Rule(verdict, pattern, "always")
    with _opened(home) as timeline:
        Rules(timeline).add(verdict, pattern)
        rules = Rules(timeline).all()
    click.echo(f"from now on: {rule}")
    port = pattern.port or 443
    decided = Policy("deny", (*_settings(home).rules(), *rules)).decide(pattern.host, port)
    if verdict == "allow" and not pattern.below and decided.verdict == "deny":
        where = "freehold.toml" if decided.rule and decided.rule.scope == "manifest" else "your rules"
        click.secho(f"but {decided.reason}, in {where}, and deny wins", fg="yellow", err=True)
    kind = why_refused(pattern.host.address) if pattern.host.address is not None else None
    if verdict == "allow" and kind:
        click.secho(
            f"mind that {pattern.host} is a {kind} address: the agent reaches what only you should",
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
    import os

    from freehold.egress import EgressSettings
    from freehold.manifest import load_manifest

    found = load_manifest(home.manifest, os.environ, home=home.root).manifest.egress
    return EgressSettings(found.mode, tuple(found.allow), tuple(found.deny))


def _state(home: Home) -> tuple[list["Rule"], list["Question"]]:
    from freehold.egress import Questions, Rules
    from freehold.timeline import Timeline

    if not home.timeline.exists():
        return [], []
    with Timeline(home.timeline, readonly=True) as timeline:
        if not timeline.query("SELECT 1 FROM sqlite_schema WHERE name = 'egress_rule'"):
            return [], []
        return Rules(timeline).all(), Questions(timeline).all()


def _print_rules(rules: list["Rule"]) -> None:
    if not rules:
        click.echo("no rules")
    width = max((len(str(rule.pattern)) for rule in rules), default=0)
    for rule in rules:
        click.secho(f"  {rule.verdict:<6}", fg="green" if rule.verdict == "allow" else "red", nl=False)
        click.echo(f" {rule.pattern!s:<{width}}  {rule.scope}")


def _print_questions(questions: list["Question"]) -> None:
    if not questions:
        click.echo("no questions wait for you")
        return
    click.echo(f"{len(questions)} question{'s' * (len(questions) > 1)} for you")
    for question in questions:
        times = "once" if question.count == 1 else f"{question.count} times"
        click.secho(f"  {question.id:>4}", bold=True, nl=False)
        click.echo(f"  {question.pattern}  asked {times} by {question.who}, first at {question.first_seen}")
    click.echo(f"answer with: freehold egress answer {questions[0].id} once|session|always|never")
