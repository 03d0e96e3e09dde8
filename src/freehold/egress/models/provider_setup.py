"""Connects and disconnects providers: the key goes into the vault, everything else into the manifest."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from freehold.egress.models.codex_sign_in import read_sign_in
from freehold.egress.models.keys import fits_header
from freehold.egress.models.provider import Provider, read_provider
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest import Manifest
from freehold.manifest.change import can_remove, change_manifest
from freehold.manifest.edit import Plain
from freehold.manifest.secret_text import find_named_secrets, parse_reference
from freehold.manifest.sections.models import BASE_URLS, SUBSCRIPTIONS, AuthKind, ModelSection, ProviderKind
from freehold.observe.secrets import Secret

TOUR_PROVIDER = "tour"
"""The provider of the tour, which Freehold itself serves. No other can have this name."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}", re.ASCII)
CLAUDE_TOKEN_PREFIX = "sk-ant-oat"  # noqa: S105 - how such tokens begin


@dataclass(frozen=True)
class ProviderDraft:
    """A provider that the owner wants to connect. `key` is the key itself; None when it needs none, or keeps the one it has."""

    name: str
    kind: ProviderKind
    base_url: str | None = None
    key: Secret | None = None
    model: str | None = None
    auth: AuthKind = "key"
    is_default: bool = False

    def key_to_send(self) -> Secret | None:
        """The key as a request carries it. Raises `models.bad-sign-in`."""
        text = read_key(self)
        if text is not None and self.auth == "codex":
            text = read_sign_in(text).access_token
        return None if text is None else Secret(text)

    def as_provider(self) -> Provider:
        """For a trial before anything is stored. Raises `models.bad-name`, `models.bad-address` or `models.bad-sign-in`."""
        check_provider_name(self.name)
        read_key(self)
        key = None if self.key is None else f"secret:{self.name}"
        address = self.base_url or None
        return read_provider(
            self.name,
            ModelSection(kind=self.kind, base_url=address, key=key, model=self.model or None, auth=self.auth),
        )


def check_provider_name(name: str) -> None:
    """Raises `models.bad-name`."""
    if not NAME.fullmatch(name) or name == TOUR_PROVIDER:
        raise FreeholdError(
            "models.bad-name",
            f"{name!a:.80} is not a name for a provider",
            hint="Use at most 50 letters, digits, hyphens and underscores, such as openai-work",
        )


def read_key(draft: ProviderDraft) -> str | None:
    """The key as it is kept in the vault. Raises `models.bad-key`, or `models.bad-sign-in` for a subscription."""
    if draft.key is None:
        return None
    text = draft.key.reveal().strip()
    if draft.auth == "codex":
        return read_sign_in(text).as_text()
    if not fits_header(text):
        raise FreeholdError(
            "models.bad-key",
            "This is not a key: a key is one line of letters, digits and signs without blanks",
            hint="Copy it again from where it was issued",
        )
    if draft.auth == "claude-code" and not text.startswith(CLAUDE_TOKEN_PREFIX):
        raise FreeholdError(
            "models.bad-sign-in",
            f"This is not a token of a Claude subscription: it does not begin with {CLAUDE_TOKEN_PREFIX}",
            hint="Run claude setup-token on your own machine, and paste what it prints",
        )
    return text


def connect_provider(
    path: Path, manifest: Manifest, vault: Vault, draft: ProviderDraft, environ: Mapping[str, str]
) -> Path:
    """Stores the key, then the section. Replaces a provider of the same name. Returns the file that changed. Blocking.

    A secret that something else uses is not overwritten: the key gets another name then. Raises `manifest.bad-value`
    when the section would be an error, for example because a key is missing.
    """
    wanted = draft.as_provider()
    existing = manifest.models.get(draft.name)
    if existing is not None and existing.key is not None and draft.key is None:
        _refuse_other_host(draft.name, existing, wanted)
    reference = parse_reference(existing.key or "") if existing is not None else None
    is_kept = reference is not None and reference[0] == "secret"
    secret = reference[1] if reference is not None and is_kept else _free_secret_name(manifest, draft.name)
    value = read_key(draft)
    kept = existing.key if existing is not None else None
    usual = SUBSCRIPTIONS[draft.auth].base_url if draft.auth in SUBSCRIPTIONS else BASE_URLS.get(draft.kind)
    address = (draft.base_url or "").rstrip("/") or None
    table: dict[str, Plain | None] = {
        "enabled": None,
        "kind": draft.kind,
        "base_url": None if address == usual else address,
        "key": f"secret:{secret}" if value is not None else kept,
        "auth": None if draft.auth == "key" else draft.auth,
        "model": draft.model or None,
    }
    changes = {f"models.{draft.name}.{key}": each for key, each in table.items()}
    if draft.is_default:
        changes["agents.model"] = draft.name
    is_new = value is not None and all(each.name != secret for each in vault.list())
    if value is not None:
        vault.set(secret, value)
    try:
        return change_manifest(path, changes, environ)
    except BaseException:
        if is_new:
            vault.remove(secret)
        raise


def _free_secret_name(manifest: Manifest, provider: str) -> str:
    """The name of the provider, or with a number when another part of the manifest uses the secret of that name."""
    used = _secrets_of_others(manifest, provider)
    names = (provider if number == 1 else f"{provider}-{number}" for number in count(1))
    return next(name for name in names if name not in used)


def _secrets_of_others(manifest: Manifest, provider: str) -> set[str]:
    """The secrets to which the manifest refers outside of this provider."""
    content = manifest.model_dump()
    content["models"].pop(provider, None)
    return set(find_named_secrets(content))


def _refuse_other_host(name: str, existing: ModelSection, wanted: Provider) -> None:
    """A key that is in the vault must not be sent to another host by someone who could not read it there."""
    before = read_provider(name, existing)
    if (before.scheme, before.host, before.port) != (wanted.scheme, wanted.host, wanted.port):
        raise FreeholdError(
            "models.key-needed",
            f"The key of {name} was given for {before.authority}, and would go to {wanted.authority}",
            hint="Give the key again, or connect the other server under another name",
        )


def disconnect_provider(path: Path, manifest: Manifest, vault: Vault, name: str, environ: Mapping[str, str]) -> Path:
    """Takes a provider out, and its key when nothing else in the manifest uses it. Returns the file that changed. Blocking.

    One of a manifest that cannot be written is switched off. Raises `models.not-found`, or `manifest.bad-value` when an
    agent is set to use it.
    """
    if name not in manifest.models:
        raise FreeholdError(
            "models.not-found",
            f"There is no model provider {name!a:.80}",
            hint=f"Connected are: {', '.join(manifest.models) or 'none'}",
        )
    gone = can_remove(path, "models", name)
    changes: dict[str, Plain | None] = {f"models.{name}": None} if gone else {f"models.{name}.enabled": False}
    if manifest.agents.model == name:
        changes["agents.model"] = None
    changed = change_manifest(path, changes, environ)
    key = manifest.models[name].key
    reference = parse_reference(key or "")
    is_kept = reference is not None and reference[0] == "secret"
    if gone and reference is not None and is_kept and reference[1] not in _secrets_of_others(manifest, name):
        with suppress(FreeholdError):  # it may be missing
            vault.remove(reference[1])
    return changed


def choose_default_provider(path: Path, manifest: Manifest, name: str, environ: Mapping[str, str]) -> Path:
    """Agents that name no provider use this one from now on. Returns the file that changed. Blocking."""
    if name not in manifest.models:
        raise FreeholdError("models.not-found", f"There is no model provider {name!a:.80}")
    return change_manifest(path, {"agents.model": name}, environ)


def default_provider(manifest: Manifest) -> str | None:
    """The provider of agents that name none."""
    chosen = manifest.agents.model
    enabled = [name for name, model in manifest.models.items() if model.enabled]
    return chosen if chosen in enabled else next(iter(enabled), None)
