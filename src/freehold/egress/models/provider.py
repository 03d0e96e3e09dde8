"""A model provider of the manifest, and its address."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from freehold.computer.contract.conventions import LOOPBACK, MODEL_PORT
from freehold.egress.models.budget import BudgetLimits
from freehold.errors import FreeholdError
from freehold.manifest.addresses import split_url
from freehold.manifest.sections.models import SUBSCRIPTIONS, AuthKind, BudgetSection, ModelSection, ProviderKind

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Provider:
    """`base_path` is the prefix of every path of the API; for OpenAI it is the path of the clients' base URL."""

    name: str
    kind: ProviderKind
    scheme: Literal["http", "https"]
    host: str
    port: int
    base_path: str
    key: str | None
    model: str | None
    limits: BudgetLimits
    allow: tuple[str, ...] = ()
    auth: AuthKind = "key"

    @property
    def place(self) -> str:
        """Its name and address. A connection that was opened for one place is not used for another."""
        return f"{self.name} {self.url}"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}"

    @property
    def speaks_openai(self) -> bool:
        return self.kind in ("openai", "openai-compatible")

    @property
    def inside(self) -> str:
        """The base URL for this provider's own clients, inside the computer."""
        return f"http://{LOOPBACK}:{MODEL_PORT}/{self.name}" + ("/v1" if self.speaks_openai else "")


def read_provider(name: str, model: ModelSection) -> Provider:
    """Raises `models.bad-address` for an invalid base URL."""
    parts = split_url(model.address or "")
    if parts is None or parts.scheme not in ("http", "https") or parts.query or parts.fragment or parts.username:
        raise FreeholdError(
            "models.bad-address",
            f"The base_url of [models.{name}] is not a valid URL",
            hint='Example: base_url = "https://llm.example.org/v1"',
        )
    path = parts.path.rstrip("/")
    if model.kind in ("anthropic", "gemini"):
        # Their clients add the version themselves, so it is removed when the owner wrote it.
        path = path.removesuffix("/v1").removesuffix("/v1beta")
    terms = SUBSCRIPTIONS.get(model.auth)
    if terms is not None and (model.kind != terms.kind or (model.address or "").rstrip("/") != terms.base_url):
        raise FreeholdError(
            "models.bad-address",
            f"The token of [models.{name}] may be sent to {terms.base_url} only",
            hint=f'Write kind = "{terms.kind}" and leave base_url out',
        )
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Provider(
        name,
        model.kind,
        scheme,
        parts.hostname or "",
        parts.port or (443 if scheme == "https" else 80),
        path,
        model.key,
        model.model,
        read_limits(model.budget),
        tuple(model.allow),
        model.auth,
    )


def read_limits(budget: BudgetSection) -> BudgetLimits:
    return BudgetLimits(budget.day_cost, budget.month_cost, budget.day_tokens, budget.month_tokens)


def read_providers(models: Mapping[str, ModelSection]) -> dict[str, Provider]:
    """The enabled providers, in the manifest's order. One with an invalid address is left out."""
    found = {}
    for name, model in models.items():
        if model.enabled:
            try:
                found[name] = read_provider(name, model)
            except FreeholdError as error:
                log.warning("a model provider is left out: %s", error)
    return found
