"""What the shell offers after Tab: entries, sessions, agents and other names of this Freehold.

Nothing here may fail or wait: while the owner types, no suggestion is better than an error.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from freehold.agents.visible_text import make_visible
from freehold.cli._home_files import read_manifest
from freehold.home import Home, find_home

KEEPER_TIMEOUT = 2.0
MAX_SHOWN = 50

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Names = Iterable[tuple[str, str]]


def offer(read_names: Callable[[Home], Names]) -> Completer:
    """Make the `shell_complete` of an argument from a function that lists names, each with a word about it."""

    def complete(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
        given = ctx.params.get("home")
        home = given if isinstance(given, Home) else find_home(None)
        try:
            names = [*read_names(home)]
        except Exception:  # the shell would print it between the owner's words
            return []
        found = [(name, about) for name, about in names if name.startswith(typed)][:MAX_SHOWN]
        return [CompletionItem(name, help=make_visible(about, lines=False) or None) for name, about in found]

    return complete


def read_entry_names(home: Home) -> Names:
    from freehold.cli._history import format_age
    from freehold.history.calls import ListEntries
    from freehold.keeper.client import call_keeper

    answer = call_keeper(home, ListEntries(None, MAX_SHOWN), timeout=KEEPER_TIMEOUT)
    now = time.time()
    for entry in answer.entries:
        yield str(entry.id), f"{format_age(now - entry.at)}  {' '.join(entry.why.split())[:60]}"


def read_session_names(home: Home) -> Names:
    from freehold.agents.sessions.store import SessionStore
    from freehold.timeline import Timeline

    if not home.timeline.exists():
        return
    with Timeline(home.timeline) as timeline:
        store = SessionStore(timeline)
        for session in store.search(archived=False, unused=False, limit=MAX_SHOWN):
            yield session.id, f"{session.agent}  {session.title[:60]}"


def read_agent_names(home: Home) -> Names:
    from freehold.agents.catalogue.registry import known_agents

    manifest = read_manifest(home)
    for name, entry in known_agents(manifest).items():
        yield name, entry.title


def read_provider_names(home: Home) -> Names:
    for name, model in read_manifest(home).models.items():
        yield name, model.model or model.kind


def read_known_provider_names(_home: Home) -> Names:
    from freehold.egress.models.known_providers import KNOWN_PROVIDERS

    for known in KNOWN_PROVIDERS:
        yield known.name, known.title


def offer_models(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The models of the provider that was typed before: those in use here, and those of a server on this machine."""
    provider = next(iter(ctx.args), None)  # click reads no argument while an option has no value yet

    def read_model_names(home: Home) -> Names:
        return _read_model_names(home, provider)

    return offer(read_model_names)(ctx, param, typed)


def _read_model_names(home: Home, provider: str | None) -> Names:
    """No key is sent for a suggestion: only servers on loopback are asked."""
    from freehold.egress.models.discovery import list_local_models
    from freehold.egress.models.known_providers import find_known_provider
    from freehold.egress.models.upstream import UpstreamPool

    chosen = {model.model: name for name, model in read_manifest(home).models.items() if model.model is not None}
    for model, name in chosen.items():
        if provider in (None, name):
            yield model, name
    if provider is None:
        return
    known = find_known_provider(provider)
    if known.is_local:
        for model in asyncio.run(list_local_models(known, UpstreamPool())):
            if model not in chosen:
                yield model, known.title


def read_program_names(home: Home) -> Names:
    from freehold.keeper.calls import GetKeeperStatus
    from freehold.keeper.client import call_keeper

    for program in call_keeper(home, GetKeeperStatus(), timeout=KEEPER_TIMEOUT).programs:
        yield program.name, program.state


def read_secret_names(home: Home) -> Names:
    from freehold.egress.vault import Vault

    for secret in Vault(home.vault).list():
        yield secret.name, ""


def read_token_names(home: Home) -> Names:
    from freehold.identity.tokens import ApiTokens

    if not home.identity.exists():
        return
    owner = read_manifest(home).owner.did
    with ApiTokens(home.identity, owner=owner) as tokens:
        for token in tokens.list():
            yield token.name, " ".join(sorted(token.scopes))
