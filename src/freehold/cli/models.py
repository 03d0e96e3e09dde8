"""`freehold models`."""

import asyncio
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import click

from freehold.cli._completion import offer, offer_models, read_known_provider_names, read_provider_names
from freehold.cli._home_files import read_manifest, record_act
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import choose_home, home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.egress.models.keys import Keys
    from freehold.egress.models.provider import Provider
    from freehold.egress.models.provider_setup import ProviderDraft


class ListedProvider(TypedDict):
    """`problem` says why its key is missing. `test` is there with --test."""

    name: str
    kind: str
    address: str
    model: str | None
    auth: str
    default: bool
    inside: str | None
    problem: str | None
    test: NotRequired[dict[str, Any]]


@click.group(invoke_without_command=True)
@click.option(
    "--test", "test", is_flag=True, help="Ask each provider for its list of models with its key. This is free."
)
@home_option
@json_option(JsonOutput(ListedProvider, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool, test: bool) -> None:
    """List the model providers, or add, remove and choose one.

    Also shows which keys are missing. Exits 1 when a tested provider fails or the manifest has errors.

    \b
    Examples:
      freehold models
      freehold models --test
      freehold models add anthropic
      freehold models default anthropic
    """
    ctx.obj = home
    if ctx.invoked_subcommand is None:
        _list_models(home, as_json=as_json, test=test)


def _list_models(home: Home, *, as_json: bool, test: bool) -> None:
    from freehold.egress.models.connect_help import connect_help
    from freehold.egress.models.keys import Keys
    from freehold.egress.models.provider import Provider, read_providers
    from freehold.egress.models.provider_setup import default_provider
    from freehold.egress.vault import Vault
    from freehold.errors import FreeholdError
    from freehold.manifest import load_manifest

    keys = Keys(Vault(home.vault), os.environ)

    def problem(provider: Provider) -> str | None:
        try:
            keys.find(provider)
        except FreeholdError as error:
            return f"{error.message}. {error.hint}"
        return None

    loaded = load_manifest(home.manifest, os.environ, home=home.root)
    for mistake in loaded.errors:
        click.secho(f"{mistake.place}  {mistake.code}  {mistake.message}", fg="red", err=True)
        if mistake.hint:
            click.echo(f"    {mistake.hint}", err=True)
    if loaded.errors:
        click.echo(
            "Freehold does not use the manifest until this is fixed. To check it again: freehold check\n", err=True
        )
    providers = read_providers(loaded.manifest.models)
    chosen = default_provider(loaded.manifest)
    checks = {each.name: asyncio.run(_check(each, keys)) for each in providers.values()} if test else {}
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "kind": each.kind,
            "address": each.url,
            "model": each.model,
            "auth": each.auth,
            "default": each.name == chosen,
            "inside": each.inside,
            "problem": problem(each),
            **({"test": checks[each.name]} if test else {}),
        }
        for each in providers.values()
    ]
    if as_json:
        echo_json(rows)
    else:
        _print(rows, connect_help())
    if loaded.errors or not all(check["ok"] for check in checks.values()):
        sys.exit(1)


async def _check(provider: "Provider", keys: "Keys") -> dict[str, Any]:
    from freehold.egress.models.provider_check import check_provider
    from freehold.egress.models.upstream import UpstreamPool
    from freehold.errors import FreeholdError

    try:
        check = await check_provider(provider, keys, UpstreamPool())
    except FreeholdError as error:
        return {"ok": False, "words": error.message, "said": "", "milliseconds": None, "models": []}
    return {
        "ok": check.ok,
        "words": check.message,
        "said": check.said,
        "milliseconds": check.milliseconds,
        "models": list(check.models),
    }


def _print(rows: list[dict[str, Any]], help_text: str) -> None:
    if not rows:
        click.echo(help_text, nl=False)
    for row in rows:
        click.secho(f"{'*' if row['default'] else ' '} {row['name']}", bold=True, nl=False)
        click.echo(f"  {row['kind']} at {row['address']}" + (f", model {row['model']}" if row["model"] else ""))
        if row["problem"]:
            click.secho(f"    {row['problem']}", fg="red")
        if "test" in row:
            said = f": {row['test']['said']}" if row["test"]["said"] else ""
            click.secho(f"    {row['test']['words']}{said}", fg="green" if row["test"]["ok"] else "red")
    if rows:
        click.echo("\n* is the default. To connect another: freehold models add")


@command.command()
@click.argument("provider", required=False, shell_complete=offer(read_known_provider_names))
@click.option("--name", help="The name it gets here. [default: that of the provider]")
@click.option("--url", help="The base URL, for a server of your own.")
@click.option("--model", shell_complete=offer_models, help="The model to use when none is chosen.")
@click.option("--env", "variable", metavar="NAME", help="Take the key from this variable of your shell.")
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False), help="Read the key from this file.")
@click.option("--default", "is_default", is_flag=True, help="Let agents that name no provider use this one.")
@click.option("--no-test", is_flag=True, help="Connect it without asking it for its models first.")
@home_option
@click.pass_context
def add(
    ctx: click.Context,
    provider: str | None,
    name: str | None,
    url: str | None,
    model: str | None,
    variable: str | None,
    file: str | None,
    is_default: bool,
    no_test: bool,
    home: Home,
) -> None:
    """Connect a model provider. Without a name, show what can be connected.

    The key is typed in, read from standard input, or taken from --env or --file. It is tested and stored in the vault.
    A running Freehold uses the provider within a second.

    \b
    Examples:
      freehold models add
      freehold models add anthropic
      pass show openrouter | freehold models add openrouter --model qwen/qwen3-coder
      freehold models add custom --name work --url https://llm.example.org/v1
      freehold models add codex --file ~/.codex/auth.json
    """
    from freehold.cli._provider_form import choose_model, find_kept_key, read_key, report_check, show_offers, try_draft
    from freehold.egress.models.known_providers import find_known_provider
    from freehold.egress.models.provider_setup import ProviderDraft, check_provider_name

    home = choose_home(ctx, home)
    if provider is None:
        show_offers(read_manifest(home))
        return
    known = find_known_provider(provider)
    name = name or known.name
    check_provider_name(name)
    address = url or known.base_url or click.prompt("Base URL")
    manifest = read_manifest(home)
    existing = manifest.models.get(name)
    key = read_key(known, variable, file, has_key=existing is not None and existing.key is not None)
    draft = ProviderDraft(name, known.kind, address, key, model, known.auth, is_default)
    if not no_test:
        kept = None if key is not None else find_kept_key(home, manifest, draft)
        check = asyncio.run(try_draft(draft, kept))
        report_check(draft.name, check)
        if model is None and (chosen := choose_model(check)) is not None:
            draft = replace(draft, model=chosen)
            report_check(draft.name, asyncio.run(try_draft(draft, kept)))
    _connect(home, draft)


def _connect(home: Home, draft: "ProviderDraft") -> None:
    from freehold.egress.models.provider_setup import connect_provider
    from freehold.egress.vault import Vault
    from freehold.home import ensure_private_folder

    ensure_private_folder(home.root)
    changed = connect_provider(home.manifest, read_manifest(home), Vault(home.vault), draft, os.environ)
    record_act(home, "models.provider_connected", {"name": draft.name, "file": changed.name})
    click.echo(f"Connected {draft.name}" + (f" with the model {draft.model}" if draft.model else "") + f" in {changed}")
    if draft.model is None and draft.kind == "openai-compatible":
        click.echo(f"Choose a model for agents that name none: freehold models add {draft.name} --model NAME", err=True)


@command.command()
@click.argument("name", shell_complete=offer(read_provider_names))
@home_option
@click.pass_context
def remove(ctx: click.Context, name: str, home: Home) -> None:
    """Disconnect a model provider, and remove its key from the vault.

    \b
    Example:
      freehold models remove openai
    """
    from freehold.egress.models.provider_setup import disconnect_provider
    from freehold.egress.vault import Vault

    home = choose_home(ctx, home)
    changed = disconnect_provider(home.manifest, read_manifest(home), Vault(home.vault), name, os.environ)
    record_act(home, "models.provider_removed", {"name": name, "file": changed.name})
    click.echo(f"Disconnected {name} in {changed}")


@command.command()
@click.argument("name", shell_complete=offer(read_provider_names))
@home_option
@click.pass_context
def default(ctx: click.Context, name: str, home: Home) -> None:
    """Choose the provider of agents that name none.

    \b
    Example:
      freehold models default anthropic
    """
    from freehold.egress.models.provider_setup import choose_default_provider

    home = choose_home(ctx, home)
    changed = choose_default_provider(home.manifest, read_manifest(home), name, os.environ)
    record_act(home, "models.provider_default", {"name": name, "file": changed.name})
    click.echo(f"{name} is the default now, in {changed}")
